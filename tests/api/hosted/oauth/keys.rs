//! Signing keys, made when a test runs.

use aws_lc_rs::hmac::{HMAC_SHA256, Key as HmacKey, sign};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A key with its id.
pub struct Key {
    pub id: String,
    pair: Pair,
}

enum Pair {
    Rs256(RsaKeyPair),
    Es256(EcdsaKeyPair),
}

impl Key {
    /// A new RSA key of 2,048 bits.
    pub fn rsa() -> Self {
        Self::of(Pair::Rs256(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    /// A new key on the curve P-256.
    pub fn elliptic() -> Self {
        Self::of(Pair::Es256(
            EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
        ))
    }

    fn of(pair: Pair) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, pair }
    }

    /// Another key of the same kind.
    pub fn alike(&self) -> Self {
        match self.pair {
            Pair::Rs256(_) => Self::rsa(),
            Pair::Es256(_) => Self::elliptic(),
        }
    }

    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rs256(_) => "RS256",
            Pair::Es256(_) => "ES256",
        }
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Pair::Es256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
        }
    }

    /// The public half: RSAPublicKey (RFC 8017), or an uncompressed point.
    pub fn public(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rs256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Es256(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// The public half as a JSON Web Key (RFC 7518 section 6).
    pub fn jwk(&self) -> Value {
        let (public, encode) = (self.public(), |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes));
        let mut jwk = match &self.pair {
            Pair::Rs256(_) => {
                // A sequence of two integers; the modulus has a leading zero, the exponent is 65,537.
                assert_eq!((public.len(), &public[265..]), (270, &[2, 3, 1, 0, 1][..]));
                json!({"kty": "RSA", "n": encode(&public[9..265]), "e": "AQAB"})
            }
            Pair::Es256(_) => {
                json!({"kty": "EC", "crv": "P-256", "x": encode(&public[1..33]), "y": encode(&public[33..])})
            }
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk["alg"] = json!(self.algorithm());
        jwk
    }
}

/// HMAC-SHA-256.
pub fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    sign(&HmacKey::new(HMAC_SHA256, key), message).as_ref().to_vec()
}
