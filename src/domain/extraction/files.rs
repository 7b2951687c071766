//! File names: a base name with a real-world extension.

use super::host;
use super::kind::EntityKind;
use super::scan::Token;
use super::source::Source;

/// Extensions that are not top-level domains.
const EXTENSIONS: &[&str] = &[
    "exe",
    "dll",
    "sys",
    "ocx",
    "cpl",
    "scr",
    "msi",
    "msp",
    "mst",
    "bat",
    "cmd",
    "ps1",
    "psm1",
    "psd1",
    "vbs",
    "vbe",
    "vba",
    "js",
    "jse",
    "wsf",
    "wsh",
    "wsc",
    "sct",
    "hta",
    "lnk",
    "inf",
    "reg",
    "jar",
    "class",
    "war",
    "ear",
    "jsp",
    "jspx",
    "asp",
    "aspx",
    "ashx",
    "asmx",
    "php",
    "php3",
    "php5",
    "phtml",
    "cgi",
    "html",
    "htm",
    "mht",
    "mhtml",
    "xhtml",
    "shtml",
    "chm",
    "hlp",
    "doc",
    "docx",
    "docm",
    "dotm",
    "dotx",
    "xls",
    "xlsx",
    "xlsm",
    "xlsb",
    "xlam",
    "xla",
    "xll",
    "xlt",
    "xltm",
    "ppt",
    "pptx",
    "pptm",
    "pps",
    "ppsx",
    "ppam",
    "rtf",
    "odt",
    "ods",
    "pdf",
    "csv",
    "tsv",
    "txt",
    "log",
    "xml",
    "xsl",
    "json",
    "yml",
    "yaml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "config",
    "dat",
    "bin",
    "tmp",
    "temp",
    "bak",
    "old",
    "rar",
    "7z",
    "gz",
    "tgz",
    "tar",
    "bz2",
    "xz",
    "lzma",
    "iso",
    "img",
    "vhd",
    "vhdx",
    "vmdk",
    "vmem",
    "dmg",
    "pkg",
    "deb",
    "rpm",
    "apk",
    "apks",
    "ipa",
    "dex",
    "elf",
    "ko",
    "o",
    "dylib",
    "db",
    "sqlite",
    "mdb",
    "accdb",
    "sql",
    "evtx",
    "evt",
    "pcap",
    "pcapng",
    "dmp",
    "mdmp",
    "gif",
    "jpg",
    "jpeg",
    "png",
    "bmp",
    "ico",
    "svg",
    "wav",
    "mp3",
    "mp4",
    "avi",
    "wmv",
    "eml",
    "msg",
    "pst",
    "ost",
    "pem",
    "crt",
    "cer",
    "pfx",
    "p12",
    "der",
    "kdbx",
    "ovpn",
    "rdp",
    "lua",
    "rb",
    "cs",
    "cpp",
    "hpp",
    "vb",
    "bas",
    "frm",
    "swift",
    "kt",
    "ts",
    "jsx",
    "tsx",
    "ipynb",
    "plist",
    "service",
    "timer",
    "crx",
    "xpi",
    "nls",
    "drv",
    "efi",
    "rom",
    "mui",
    "ttf",
    "url",
    "library-ms",
    "search-ms",
    "theme",
    "settingcontent-ms",
    "one",
    "application",
    "appx",
    "msix",
    "appxbundle",
    "msixbundle",
    "cab",
    "ace",
    "arj",
    "lzh",
    "wim",
    "swf",
    "fla",
    "lck",
    "lock",
    "pid",
    "hiv",
    "sdb",
    "mof",
    "xaml",
    "csproj",
    "vbproj",
    "sln",
    "yar",
    "yara",
    "rules",
    "stix",
    "nse",
    "ps1xml",
    "inc",
    "tpl",
    "css",
    "scss",
    "vsto",
    "manifest",
    "pif",
    "gadget",
    "job",
    "wll",
    "ax",
    "tlb",
    "udl",
    "dot",
    "rdg",
    "nupkg",
    "whl",
    "gem",
    "asar",
    "jnlp",
];
/// Product names that look like script files.
const PRODUCTS: &[&str] = &[
    "node", "vue", "react", "next", "nuxt", "express", "angular", "three", "d3", "ember", "backbone",
    "chart", "moment", "socket", "nest", "deno", "p5", "discord", "electron", "require", "type",
];

/// The confidence that this is a file name; `None` if it is not.
pub(super) fn confidence(
    source: &Source<'_>,
    part: &Token<'_>,
    extension: &str,
    domain: bool,
) -> Option<f32> {
    let base = part
        .text
        .get(..part.text.len().checked_sub(extension.len() + 1)?)?;
    if base.is_empty() || !base.chars().all(is_base_char) {
        return None;
    }
    let application = extension == "app" && base.starts_with(|c: char| c.is_uppercase());
    let file = (is_known(extension) || is_library(base)) && !domain
        || host::is_file_first(source, part, extension)
        || application;
    if !file || is_product(base, extension) || is_call(source, part, base, extension) {
        return None;
    }
    Some(if domain { 0.75 } else { 0.9 })
}

/// Whether this is a known file extension (in lower case).
pub(super) fn is_known(extension: &str) -> bool {
    EXTENSIONS.contains(&extension)
}

/// Whether the name is a versioned library, such as `libcurl.so.4.6.0`.
fn is_library(base: &str) -> bool {
    base.starts_with("lib") && base.contains(".so.") || base.ends_with(".so")
}

fn is_base_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '~' | '$' | '%' | '@')
}

fn is_product(base: &str, extension: &str) -> bool {
    let capital = base.chars().any(char::is_uppercase);
    let known = PRODUCTS.iter().any(|product| product.eq_ignore_ascii_case(base));
    extension == "js" && (capital || base == "node") && known
}

/// Whether this is member access rather than a file: `console.log(`, `self.config`, `args.url`.
fn is_call(source: &Source<'_>, part: &Token<'_>, base: &str, extension: &str) -> bool {
    let called = source.after(part.end(), 1).starts_with('(');
    let member = matches!(
        base,
        "console" | "self" | "this" | "window" | "args" | "request" | "req" | "logger" | "app" | "obj"
    ) && matches!(
        extension,
        "log"
            | "url"
            | "config"
            | "json"
            | "db"
            | "key"
            | "service"
            | "class"
            | "one"
            | "job"
            | "lock"
            | "sql"
            | "conf"
    );
    called || member
}

/// Records the file name, including the words before it if the whole name is quoted.
pub(super) fn push(source: &mut Source<'_>, part: &Token<'_>, confidence: f32) {
    let start = quoted_start(source, part).unwrap_or(part.start);
    let span = start..part.end();
    let value = source.text.get(span.clone()).unwrap_or(part.text).to_owned();
    source.push(EntityKind::FileName, value, span, "file-name", confidence);
}

/// The start of a quoted name with spaces: `"Invoice May 2021.docx"`.
fn quoted_start(source: &Source<'_>, part: &Token<'_>) -> Option<usize> {
    let closing = source.after(part.end(), 3).chars().next()?;
    let opening = match closing {
        '"' | '\'' => closing,
        '”' => '“',
        '’' => '‘',
        _ => return None,
    };
    let window = source.before(part.start, 80);
    let at = window.rfind(opening)?;
    let inner = window.get(at + opening.len_utf8()..)?;
    let plain = !inner.is_empty()
        && inner.starts_with(|c: char| c.is_alphanumeric())
        && inner
            .chars()
            .all(|c| is_base_char(c) || matches!(c, ' ' | '(' | ')' | '[' | ']' | '&'));
    // A quote directly after a letter is a closing quote.
    let opens = window
        .get(..at)?
        .chars()
        .next_back()
        .is_none_or(|c| !c.is_alphanumeric());
    // A quoted command line may end with a file name too.
    let command = inner
        .split(' ')
        .any(|word| word.starts_with('-') || word.ends_with(".exe"));
    (plain && opens && !command && inner.split(' ').count() <= 10).then(|| part.start - inner.len())
}
