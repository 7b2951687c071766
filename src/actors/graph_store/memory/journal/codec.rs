//! The binary form of a record: lengths and numbers as LEB128, ids as their 16 bytes, floats and times in full.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::Changes;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::tier::Tier;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

/// Appends the bytes of a record.
pub(super) fn encode(changes: &Changes, out: &mut Vec<u8>) {
    number(out, changes.rev);
    list(out, &changes.entities, entity);
    list(out, &changes.relations, relation);
    list(out, &changes.notes, note);
    list(out, &changes.trust, |out, (note, tier, confidence)| {
        out.extend(note.as_bytes());
        number(out, *tier as u64);
        float(out, *confidence);
    });
    list(out, &changes.mentions, |out, (note, mentions)| {
        out.extend(note.as_bytes());
        list(out, mentions, id);
    });
    list(out, &changes.superseded, |out, (old, by)| {
        out.extend(old.as_bytes());
        out.extend(by.as_bytes());
    });
}

/// Reads a record; `None` if it is not one.
pub(super) fn decode(bytes: &[u8]) -> Option<Changes> {
    let mut input = Input(bytes);
    let changes = Changes {
        rev: input.number()?,
        entities: input.list(Input::entity)?,
        relations: input.list(Input::relation)?,
        notes: input.list(Input::note)?,
        trust: input.list(|input| Some((input.id()?, input.tier()?, input.float()?)))?,
        mentions: input.list(|input| Some((input.id()?, input.list(Input::id)?)))?,
        superseded: input.list(|input| Some((input.id()?, input.id()?)))?,
    };
    input.0.is_empty().then_some(changes)
}

fn entity(out: &mut Vec<u8>, entity: &StoredEntity) {
    let draft = &entity.draft;
    id(out, &entity.id);
    text(out, &draft.key.entity_type);
    text(out, &draft.key.value);
    text(out, &draft.name);
    list(out, &draft.aliases, |out, alias| text(out, alias));
    float(out, draft.confidence);
    time(out, entity.created_at);
}

fn relation(out: &mut Vec<u8>, relation: &StoredRelation) {
    id(out, &relation.id);
    id(out, &relation.source);
    id(out, &relation.target);
    text(out, &relation.relationship);
    float(out, relation.confidence);
    option(out, relation.proof.as_ref(), |out, proof| text(out, proof));
    option(out, relation.note.as_ref(), id);
    option(out, relation.properties.as_ref(), |out, properties| {
        // A map of JSON values always has a text.
        text(out, &serde_json::to_string(properties).unwrap_or_default());
    });
    time(out, relation.created_at);
}

fn note(out: &mut Vec<u8>, note: &NoteHead) {
    id(out, &note.id);
    text(out, &note.label);
    text(out, &note.domain);
    number(out, note.tier as u64);
    float(out, note.confidence);
    out.extend(note.digest);
    list(out, &note.mentions, id);
    option(out, note.superseded_by.as_ref(), id);
    time(out, note.created_at);
}

fn number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn id(out: &mut Vec<u8>, id: &Uuid) {
    out.extend(id.as_bytes());
}

fn float(out: &mut Vec<u8>, float: f64) {
    out.extend(float.to_le_bytes());
}

fn time(out: &mut Vec<u8>, time: DateTime<Utc>) {
    out.extend(time.timestamp().to_le_bytes());
    out.extend(time.timestamp_subsec_nanos().to_le_bytes());
}

fn list<T>(out: &mut Vec<u8>, items: &[T], item: impl Fn(&mut Vec<u8>, &T)) {
    number(out, items.len() as u64);
    items.iter().for_each(|each| item(out, each));
}

fn option<T>(out: &mut Vec<u8>, value: Option<&T>, item: impl Fn(&mut Vec<u8>, &T)) {
    number(out, u64::from(value.is_some()));
    if let Some(value) = value {
        item(out, value);
    }
}

/// The bytes that are left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length)?;
        self.0 = left;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    fn float(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    fn tier(&mut self) -> Option<Tier> {
        Tier::ALL.get(self.length()?).copied()
    }

    fn time(&mut self) -> Option<DateTime<Utc>> {
        let seconds = i64::from_le_bytes(self.array()?);
        DateTime::from_timestamp(seconds, u32::from_le_bytes(self.array()?))
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length()?;
        // A damaged length must not reserve more than there can be.
        let mut items = Vec::with_capacity(length.min(self.0.len()));
        for _ in 0..length {
            items.push(item(self)?);
        }
        Some(items)
    }

    fn option<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.number()? {
            0 => Some(None),
            1 => item(self).map(Some),
            _ => None,
        }
    }

    fn entity(&mut self) -> Option<StoredEntity> {
        Some(StoredEntity {
            id: self.id()?,
            draft: EntityDraft {
                key: EntityKey {
                    entity_type: self.text()?,
                    value: self.text()?,
                },
                name: self.text()?,
                aliases: self.list(Self::text)?,
                confidence: self.float()?,
            },
            created_at: self.time()?,
        })
    }

    fn relation(&mut self) -> Option<StoredRelation> {
        Some(StoredRelation {
            id: self.id()?,
            source: self.id()?,
            target: self.id()?,
            relationship: self.text()?,
            confidence: self.float()?,
            proof: self.option(Self::text)?,
            note: self.option(Self::id)?,
            properties: match self.option(Self::text)? {
                Some(json) => Some(serde_json::from_str(&json).ok()?),
                None => None,
            },
            created_at: self.time()?,
        })
    }

    fn note(&mut self) -> Option<NoteHead> {
        Some(NoteHead {
            id: self.id()?,
            label: self.text()?,
            domain: self.text()?,
            tier: self.tier()?,
            confidence: self.float()?,
            digest: self.array()?,
            mentions: self.list(Self::id)?,
            superseded_by: self.option(Self::id)?,
            created_at: self.time()?,
        })
    }
}
