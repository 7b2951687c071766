//! What the back-up routes of both services have in common: the body, and the archive as an answer.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, ContentDisposition, DispositionParam, DispositionType};
use uuid::Uuid;

use crate::actors::backup_writer::ArchiveStream;
use crate::archive::{Digest, Since};
use crate::domain::error::DomainError;

/// Media type of an archive (RFC 8878).
pub const ARCHIVE: &str = "application/zstd";
/// Largest body: an increment names every chunk of the archive before it.
pub const BODY_LIMIT: usize = 64 << 20;
/// Fewest characters of a passphrase, and most.
pub const PASSPHRASE: [usize; 2] = [12, 1024];
/// Most archives that an increment may need, and most chunks that they may have.
pub const MOST_ARCHIVES: usize = 1000;
pub const MOST_CHUNKS: usize = 1_000_000;

/// What an archive goes on from: the archives that hold the one before together, and its chunks, each as the place of its
/// archive among these, a colon, and its digest. Without archives it is a whole one.
///
/// # Errors
/// `Invalid`, with the field.
pub fn since(archives: &[String], chunks: &[String]) -> Result<Since, DomainError> {
    let id = |text: &String| {
        let id = Uuid::parse_str(text);
        id.map_err(|_| DomainError::invalid("archives", "must be ids of archives"))
    };
    let archives: Vec<Uuid> = archives.iter().map(id).collect::<Result<_, _>>()?;
    let chunk = |text: &String| {
        let (place, digest) = text.split_once(':')?;
        let place: usize = place.parse().ok().filter(|place| *place < archives.len())?;
        Some((digest.parse::<Digest>().ok()?, place))
    };
    let rule = "must be a place in archives, a colon and a digest of 32 hexadecimal digits";
    let known = chunks
        .iter()
        .map(|text| chunk(text).ok_or_else(|| DomainError::invalid("chunks", rule)));
    let known: Vec<(Digest, usize)> = known.collect::<Result<_, _>>()?;
    Ok(Since::new(archives, known))
}

/// The archive, sent while it is written.
pub fn answer(archive: ArchiveStream) -> HttpResponse {
    let disposition = ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename(archive.file_name())],
    };
    HttpResponse::Ok()
        .content_type(ARCHIVE)
        .insert_header((CONTENT_DISPOSITION, disposition))
        .streaming(archive.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_increment_goes_on_from_is_named_with_its_rule() {
        let id = Uuid::new_v4().to_string();
        let digest = "0123456789abcdef0123456789abcdef";
        let read = |archives: &[&str], chunks: &[&str]| {
            let [archives, chunks] =
                [archives, chunks].map(|texts| texts.iter().map(|&text| text.into()).collect());
            let (archives, chunks): (Vec<String>, Vec<String>) = (archives, chunks);
            since(&archives, &chunks).map(|since| since.archives.len())
        };
        assert_eq!(read(&[], &[]).ok(), Some(0));
        assert_eq!(read(&[&id], &[&format!("0:{digest}")]).ok(), Some(1));
        let chunk = |place: &str, digest: &str| format!("{place}:{digest}");
        for chunk in [
            chunk("1", digest),
            chunk("-1", digest),
            chunk("", digest),
            chunk("0", ""),
            chunk("0", &digest[1..]),
            chunk("0", "0123456789abcdef0123456789abcdeg"),
            digest.to_owned(),
        ] {
            let said = read(&[&id], &[&chunk]).unwrap_err().to_string();
            assert!(said.starts_with("chunks: must be"), "{chunk}: {said}");
        }
        let said = read(&["x"], &[]).unwrap_err().to_string();
        assert!(said.starts_with("archives: must be"), "{said}");
    }
}
