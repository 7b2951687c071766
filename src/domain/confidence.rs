//! Confidence on the service's own scale, 0 to 1.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A confidence from 0 to 1 (STIX writes it from 0 to 100).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Confidence(f64);

impl Confidence {
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Confidence {
    type Error = &'static str;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        // NaN is outside every range.
        if (0.0..=1.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err("must be a number from 0 to 1")
        }
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer)?
            .try_into()
            .map_err(serde::de::Error::custom)
    }
}

impl PartialSchema for Confidence {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Number);
        let number = number.minimum(Some(0)).maximum(Some(1));
        number.examples([0.8]).into()
    }
}

impl ToSchema for Confidence {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_to_one_is_a_confidence() {
        assert_eq!(Confidence::try_from(1.0).map(Confidence::value), Ok(1.0));
        for bad in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert!(Confidence::try_from(bad).is_err(), "{bad}");
        }
    }
}
