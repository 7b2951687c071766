#!/usr/bin/env python3
"""Builds assets/gazetteer.csv from own.csv and the MISP galaxies. README.md says where the inputs come from.

    build.py WHEEL            writes the asset
    build.py WHEEL --check    fails if the asset differs from what would be written
    build.py WHEEL --words DIRECTORY
                              also renews ordinary.txt from SCOWL's lists (Debian: wamerican-small, wamerican-large)

The same inputs give the same bytes: sources are read in a fixed order, and the first entry that claims a name keeps it.
"""

import argparse
import csv
import hashlib
import io
import json
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).parent
OUTPUT = HERE.parent / "gazetteer.csv"
WHEEL_SHA256 = "261e5765ee0488ee27ffe09ec1c6685d013b15ea1f2b8bf584d2bcd13aea7b60"
CLUSTERS = "pymispgalaxies/data/misp-galaxy/clusters/"

# Galaxies in order of precedence. Left out: malpedia (CC BY-NC-SA), tidal-* and 360net (terms unknown).
GALAXIES = [
    ("mitre-intrusion-set", "actor"),
    ("mitre-malware", "malware"),
    ("mitre-tool", "tool"),
    ("threat-actor", "actor"),
    ("microsoft-activity-group", "actor"),
    ("tool", "malware"),
    ("rat", "malware"),
    ("banker", "malware"),
    ("botnet", "malware"),
    ("stealer", "malware"),
    ("backdoor", "malware"),
    ("cryptominers", "malware"),
    ("exploit-kit", "malware"),
    ("ransomware", "malware"),
    ("android", "malware"),
]
# Galaxies whose clusters are told apart with care, so that a name of two of them is in dispute.
CURATED = {"mitre-intrusion-set", "mitre-malware", "mitre-tool", "threat-actor"}
# Lists of many obscure names: their short ones count only as they are written, or beside a word that says what they are.
OBSCURE = {"ransomware", "android", "rat", "banker", "botnet"}
# Names of advertising kits and file names of apps are among these.
CONTEXT_ONLY = {"android"}
SUFFIX = re.compile(
    r"[\s_-]+(?:ransom(?:e?ware|sware)|ramsomware|ransonware|malware|trojan|backdoor|botnet|worm|virus|rootkit|bootkit|wiper)$",
    re.IGNORECASE,
)
# Names under which one vendor's scanner reports a file.
DETECTION = re.compile(
    r"^(?:trojan|backdoor|bkdr|troj|tspy|w32|w64|win32|win64|agent|downloader|ransom|heur|mal|worm|pws|exploit|js|vbs|html|"
    r"android|androidos|androrat|osx|linux|elf|hacktool|infostealer|packed|adware|spyware|virus|tr|bds|a|variant)[._/:!-]",
    re.IGNORECASE,
)
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9 ._'&+$/-]*$")
# A name with such a word is none of ordinary language.
THREAT = re.compile(
    r"\b(?:ransomware|malware|backdoor|trojan|rootkit|bootkit|wiper|spyware|webshell|rat|botnet|stealer|infostealer|framework|loader|beacon|c2|apt)\b",
    re.IGNORECASE,
)
MAX_WORDS = 4
MAX_LENGTH = 40


def canonical(name):
    """As canonical_name of the extraction: letters and digits, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


def lines(file):
    """The words of a kept list; `#` begins a comment."""
    text = (HERE / file).read_text(encoding="utf-8")
    return {line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")}


class Galaxies:
    """The clusters of the wheel."""

    def __init__(self, wheel):
        data = pathlib.Path(wheel).read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found != WHEEL_SHA256:
            sys.exit(f"{wheel}: sha256 is {found}, expected {WHEEL_SHA256}")
        self.archive = zipfile.ZipFile(io.BytesIO(data))

    def clusters(self, galaxy):
        document = json.loads(self.archive.read(f"{CLUSTERS}{galaxy}.json"))
        for value in document["values"]:
            meta = value.get("meta") or {}
            yield value["value"], meta.get("synonyms") or [], meta.get("external_id")

    def disputed(self):
        """The names that one galaxy gives to several clusters, with the sort of thing; the name that a single one of them
        goes by is its own."""
        found = {}
        for galaxy, kind in (one for one in GALAXIES if one[0] in CURATED):
            carriers, titles = {}, {}
            for at, (value, synonyms, _) in enumerate(self.clusters(galaxy)):
                for raw in [value, *synonyms]:
                    name = clean(raw)
                    if name:
                        key = canonical(SUFFIX.sub("", name))
                        carriers.setdefault(key, {})[at] = SUFFIX.sub("", name)
                        if raw == value:
                            titles.setdefault(key, set()).add(at)
            for key, clusters in carriers.items():
                if len(clusters) > 1 and len(titles.get(key, ())) != 1:
                    found.setdefault(key, (next(iter(clusters.values())), kind, galaxy))
        return found

    def places(self):
        """Countries and regions: some clusters list them among the names."""
        found = set()
        for galaxy in ("country", "region"):
            for name, synonyms, _ in self.clusters(galaxy):
                found.update(canonical(text) for text in [name, *synonyms])
        return found


def clean(name):
    """The names inside one field of a cluster; empty if it holds none."""
    name = re.sub(r" - [GSC]\d{4}$", "", name.strip())
    name = re.sub(r"\s*\((?:[^)]*)\)\s*$", "", name)
    name = re.sub(r"\s+", " ", name).strip(" .!\"'*")
    if not NAME.match(name) or DETECTION.match(name) or len(name) > MAX_LENGTH:
        return None
    words = name.split(" ")
    if len(words) > MAX_WORDS or re.search(r"\b(?:or|aka|by|related|version|unnamed|unknown|fake)\b", name, re.IGNORECASE):
        return None
    if re.search(r"\.(?:exe|dll|com|net|org|html?|js|vbs|pyw?|a|b|[0-9])$", name, re.IGNORECASE) or "http" in name:
        return None
    if re.search(r"\.[a-z]{1,3}$", name):
        return None
    letters = sum(c.isalpha() for c in name)
    return name if letters >= 3 and letters * 2 >= len(name) else None


class Words:
    """What is ordinary language, and what is never a name."""

    def __init__(self, places):
        self.ordinary = lines("ordinary.txt")
        self.never = {canonical(word) for word in lines("never.txt")} | places

    def is_ordinary(self, name):
        parts = [part for part in re.split(r"[ ./'&+_-]+", name) if part]
        return all(part.lower() in self.ordinary or part.isdigit() or len(part) < 3 for part in parts)

    def mode(self, name, galaxy):
        """The mark before a name: `~` needs context, `^` does where a sentence begins, `=` needs exact case."""
        if len(canonical(name)) <= (4 if galaxy in OBSCURE else 3) or galaxy in CONTEXT_ONLY:
            return "~"
        if re.search(r"[ .-]", name):
            if not self.is_ordinary(name):
                return ""
            return "~" if galaxy in OBSCURE or name.islower() else "="
        if name.lower() in self.ordinary:
            stylised = re.search(r"[a-z0-9][A-Z]|[A-Za-z][0-9]", name)
            return "=" if stylised and galaxy not in OBSCURE else "~"
        return "=" if len(name) <= (6 if galaxy in OBSCURE else 4) else ""

    def own_mode(self, marked):
        """The mark of an own name: ordinary words without one get it, and those that need exact case need more."""
        name = marked.lstrip("=~")
        plain = re.fullmatch(r"[A-Z][a-z]+|[A-Z][a-z]+ (?:group|gang)", name) and name.lower().split()[0] in self.ordinary
        if marked.startswith("="):
            return "^" if plain else "="
        if marked.startswith("~"):
            return "~"
        if re.search(r"[ .-]", name) and not plain:
            return "=" if self.is_ordinary(name) and not THREAT.search(name) else ""
        letters = name.isalpha()
        short = letters and len(name) <= 4
        if plain:
            return "^"
        return "=" if short or (letters and name.lower() in self.ordinary) else ""


class Gazetteer:
    """Entries in order, and who owns each canonical name."""

    def __init__(self, words, disputed):
        self.words = words
        self.disputed = disputed
        # How own.csv writes names in dispute.
        self.spelled = {}
        self.rows = []
        self.owner = {}

    def read_own(self):
        with open(HERE / "own.csv", encoding="utf-8", newline="") as file:
            for name, kind, attack_id, aliases in csv.reader(file):
                if kind == "type":
                    continue
                marked = [name, *(alias for alias in aliases.split(";") if alias.strip())]
                row = {"kind": kind, "id": attack_id, "names": [], "galaxy": "own"}
                for text in marked:
                    text = text.strip()
                    self.claim(row, self.words.own_mode(text) + text.lstrip("=~"), own=True)
                self.rows.append(row)
                if attack_id:
                    self.owner[canonical(attack_id)] = row

    def claim(self, row, marked, own=False):
        """Adds a name to a row unless another row has it, or it is in dispute."""
        key = canonical(marked.lstrip("=~^"))
        if key in self.disputed and (row["names"] or not own):
            self.spelled.setdefault(key, marked if own else None)
            return
        taken = self.owner.get(key)
        if taken is None or (own and taken is row):
            self.owner[key] = row
            row["names"].append(marked)
        elif own:
            sys.exit(f"own.csv: {marked} belongs to two entries")

    def marked(self, name, galaxy):
        """A name with its mark. Lists in lower case are written as reports write them."""
        mode = self.words.mode(name, galaxy)
        written = name.title() if name.islower() and (mode or galaxy == "ransomware") else name
        return (mode or ("=" if written != name else "")) + written

    def forms(self, names):
        """Cleaned names, each once; "Foo Ransomware" gives "Foo"."""
        found = {}
        for raw in names:
            name = clean(raw)
            if not name:
                continue
            name = SUFFIX.sub("", name)
            key = canonical(name)
            if len(key) >= 3 and key not in self.words.never:
                found.setdefault(key, name)
        return list(found.values())

    def add(self, value, synonyms, attack_id, kind, galaxy):
        first = self.forms([value])
        names = self.forms([value, *synonyms])
        row = self.owner.get(canonical(attack_id)) if attack_id else None
        row = row or self.known(first, names, kind)
        if row is None:
            if not first and galaxy in OBSCURE:
                return
            row = {"kind": kind, "id": "", "names": [], "galaxy": galaxy}
            for name in names:
                self.claim(row, self.marked(name, galaxy))
            if not row["names"]:
                return
            self.rows.append(row)
        else:
            for name in names:
                self.claim(row, self.marked(name, galaxy))
        if attack_id and not row["id"] and canonical(attack_id) not in self.owner:
            row["id"] = attack_id
            self.owner[canonical(attack_id)] = row

    def known(self, first, names, kind):
        """The entry that this cluster describes: it has the cluster's name, or at least two of its synonyms."""
        actor = kind == "actor"
        owners = [self.owner[canonical(name)] for name in names if canonical(name) in self.owner]
        owners = [row for row in owners if (row["kind"] == "actor") == actor]
        for name in first:
            row = self.owner.get(canonical(name))
            if row is not None and (row["kind"] == "actor") == actor:
                return row
        for row in owners:
            if sum(other is row for other in owners) >= 2:
                return row
        return None

    def add_disputed(self):
        """A name in dispute stands for itself."""
        for key, (name, kind, galaxy) in self.disputed.items():
            if key not in self.owner and len(key) >= 3 and key not in self.words.never:
                marked = self.spelled.get(key) or self.marked(name, galaxy)
                row = {"kind": kind, "id": "", "names": [marked], "galaxy": galaxy}
                self.owner[key] = row
                self.rows.append(row)

    def text(self):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["name", "type", "attack_id", "aliases"])
        for row in self.rows:
            name, *aliases = row["names"]
            writer.writerow([name, row["kind"], row["id"], ";".join(aliases)])
        return out.getvalue()


def all_names(galaxies):
    """The parts of every name, in lower case."""
    with open(HERE / "own.csv", encoding="utf-8", newline="") as file:
        for name, _, _, aliases in csv.reader(file):
            yield from (part.lower() for part in re.split(r"[ ;./'&+_=~-]+", f"{name};{aliases}") if part)
    for galaxy, _ in GALAXIES:
        for value, synonyms, _ in galaxies.clusters(galaxy):
            for raw in [value, *synonyms]:
                name = clean(raw)
                if name:
                    yield from (part.lower() for part in re.split(r"[ ./'&+_-]+", SUFFIX.sub("", name)) if part)


def renew_words(galaxies, directory):
    """Keeps the words of SCOWL that are (parts of) names, so that a build needs no word list."""
    listed = set()
    for file in ("american-english-small", "american-english-large"):
        text = (pathlib.Path(directory) / file).read_text(encoding="utf-8")
        listed.update(word.strip().lower() for word in text.splitlines())
    names = set(all_names(galaxies))
    kept = [line for line in (HERE / "ordinary.txt").read_text(encoding="utf-8").splitlines()]
    marker = kept.index("# From SCOWL") + 1
    own = {line for line in kept[:marker] if not line.startswith("#")}
    found = sorted(names & listed - own)
    (HERE / "ordinary.txt").write_text("\n".join(kept[:marker] + found) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Builds assets/gazetteer.csv.")
    parser.add_argument("wheel")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--words", metavar="DIRECTORY")
    options = parser.parse_args()
    galaxies = Galaxies(options.wheel)
    if options.words:
        renew_words(galaxies, options.words)
    gazetteer = Gazetteer(Words(galaxies.places()), galaxies.disputed())
    gazetteer.read_own()
    for galaxy, kind in GALAXIES:
        for value, synonyms, attack_id in galaxies.clusters(galaxy):
            gazetteer.add(value, synonyms, attack_id, kind, galaxy)
    gazetteer.add_disputed()
    text = gazetteer.text()
    if options.check:
        if OUTPUT.read_text(encoding="utf-8") != text:
            sys.exit(f"{OUTPUT} is not what this script writes; run it without --check")
    else:
        OUTPUT.write_text(text, encoding="utf-8", newline="")
    print(f"{len(gazetteer.rows)} entries, {sum(len(row['names']) for row in gazetteer.rows)} names")


if __name__ == "__main__":
    main()
