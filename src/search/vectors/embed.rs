//! Text to vectors: the [`Embedder`] interface, the built-in static model, and quantisation.
//!
//! Vectors are stored as signed bytes scaled by their largest component and compared by cosine, so the scale cancels
//! out and all eight bits carry information.

use std::sync::Arc;

use model2vec_rs::model::StaticModel;

use crate::search::error::EmbedError;
use crate::search::text::lexicon::with_english;

/// Turns texts into vectors. Implementations may block (HTTP); no index lock is held meanwhile.
pub trait Embedder: Send + Sync {
    /// Identifies the model and its version; an index made with another one is rebuilt.
    fn id(&self) -> String;
    /// Length of every vector.
    fn dimension(&self) -> usize;
    /// Whether its cosines are those that the floor of scores was fitted to. Those of other models are spread otherwise, so
    /// that nothing they find is left out as unlike.
    fn has_floor(&self) -> bool {
        false
    }
    /// One vector per text, in order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
    /// The vector of a query. A caller is waiting, so the time-out may be shorter.
    fn embed_query(&self, query: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vectors = self.embed(&[query])?;
        vectors.pop().ok_or(EmbedError("no vector for the query".into()))
    }
}

/// Name of the built-in model.
pub const BUILTIN_MODEL: &str = "minilm-static-256";

/// The static model compiled into the binary.
pub struct BuiltinEmbedder {
    model: StaticModel,
    id: String,
}

pub(in crate::search) const TOKENIZER: &[u8] = include_bytes!("../../../assets/embedding/tokenizer.json");
const WEIGHTS: &[u8] = include_bytes!("../../../assets/embedding/model.safetensors");
const CONFIG: &[u8] = include_bytes!("../../../assets/embedding/config.json");

impl BuiltinEmbedder {
    /// Loads the model, about 20 ms.
    pub fn load() -> Result<Self, EmbedError> {
        let model = StaticModel::from_bytes(TOKENIZER, WEIGHTS, CONFIG, Some(true))
            .map_err(|err| EmbedError(Arc::from(err.to_string())))?;
        // Hashing every 61st byte tells two builds of the weights apart at a fraction of the cost.
        let print = crate::search::text::fnv1a(WEIGHTS.iter().step_by(61).chain(CONFIG).copied());
        let id = format!("minilm-static-{}/{}-{print:016x}", model.dim(), WEIGHTS.len());
        Ok(BuiltinEmbedder { model, id })
    }
}

impl Embedder for BuiltinEmbedder {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn dimension(&self) -> usize {
        self.model.dim()
    }

    fn has_floor(&self) -> bool {
        true
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        // One at a time, which avoids the thread pool of the tokenizer crate. The model reads the first 512 tokens of a
        // text.
        let vector = |text: &&str| self.model.encode_single(&with_english(text));
        Ok(texts.iter().map(vector).collect())
    }
}

/// Quantises floats to signed bytes, scaled so that the largest component becomes 127. A zero or non-finite vector
/// becomes all zeroes, which no vector search returns.
pub fn quantize(vector: &[f32]) -> Vec<i8> {
    let largest = vector.iter().fold(0f32, |max, x| max.max(x.abs()));
    if !largest.is_normal() || vector.iter().any(|x| !x.is_finite()) {
        return vec![0; vector.len()];
    }
    // The cast saturates and the quotient is within ±127.
    vector
        .iter()
        .map(|x| (x / largest * 127.0).round() as i8)
        .collect()
}

/// The text of a node that is embedded.
pub fn embedding_text(name: &str, aliases: &[String], body: &str) -> String {
    let mut text = String::with_capacity(name.len() + body.len() + 64);
    text.push_str(name);
    for alias in aliases
        .iter()
        .filter(|alias| !alias.eq_ignore_ascii_case(name))
        .take(8)
    {
        text.push_str(", ");
        text.push_str(alias);
    }
    // The name is repeated, as it says more about the node than any sentence of a long description.
    for part in [". ", name, ". ", body] {
        text.push_str(part);
    }
    text
}
