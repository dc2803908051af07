//! The public keys of an issuer, as JSON Web Keys, and the signatures that they verify.
//!
//! A key is good for exactly one algorithm, which its form decides and never the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

/// Keys of one issuer that are looked at; the largest have a dozen.
const MAX_KEYS: usize = 64;
/// Bytes of an RSA modulus: 8,192 bits, the most that is verified.
const MAX_MODULUS: usize = 1024;
/// Characters of the name of a key.
const MAX_ID: usize = 256;

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    /// The algorithm with this name in a token or a key. Everything else is refused, `none` and secrets shared with the
    /// issuer above all.
    pub fn parse(name: &str) -> Option<Algorithm> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            "EdDSA" => Some(Algorithm::EdDsa),
            _ => None,
        }
    }
}

/// The keys of an issuer that can verify a token.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    public: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why a signature counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureProblem {
    /// No key has the name and the algorithm that the token gives. The issuer may have a new one.
    UnknownKey,
    Wrong,
}

impl KeySet {
    /// Reads a JWK set. Keys that are not for signatures, or of a form that is not known, are left out.
    pub fn parse(text: &[u8]) -> Result<KeySet, String> {
        let set: Value = serde_json::from_slice(text).map_err(|error| format!("the keys are not JSON: {error}"))?;
        let Some(keys) = set.get("keys").and_then(Value::as_array) else {
            return Err("the keys have no list `keys`".to_owned());
        };
        Ok(KeySet { keys: keys.iter().take(MAX_KEYS).filter_map(Key::read).collect() })
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Verifies with the keys of this name and algorithm; a token without a name is tried with all of the algorithm.
    pub fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureProblem> {
        let fits = |key: &&Key| key.public.algorithm() == algorithm && (id.is_none() || key.id.as_deref() == id);
        let mut keys = self.keys.iter().filter(fits).peekable();
        if keys.peek().is_none() {
            return Err(SignatureProblem::UnknownKey);
        }
        match keys.any(|key| key.public.is_of(message, signature)) {
            true => Ok(()),
            false => Err(SignatureProblem::Wrong),
        }
    }
}

impl Key {
    fn read(key: &Value) -> Option<Key> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| decode(text(name)?);
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let operations = key.get("key_ops").and_then(Value::as_array);
        if operations.is_some_and(|operations| !operations.iter().any(|operation| operation == "verify")) {
            return None;
        }
        let public = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let [modulus, exponent] = [bytes("n")?, bytes("e")?].map(without_zeros);
                let is_usable = (1..=MAX_MODULUS).contains(&modulus.len()) && (1..=8).contains(&exponent.len());
                is_usable.then_some(PublicKey::Rsa { modulus, exponent })?
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                (x.len() == 32 && y.len() == 32).then(|| PublicKey::P256([&[4][..], &x, &y].concat()))?
            }
            ("OKP", Some("Ed25519")) => bytes("x").filter(|x| x.len() == 32).map(PublicKey::Ed25519)?,
            _ => return None,
        };
        if text("alg").is_some_and(|name| Algorithm::parse(name) != Some(public.algorithm())) {
            return None;
        }
        let id = text("kid").map(str::to_owned);
        (id.as_ref().is_none_or(|id| id.len() <= MAX_ID)).then_some(Key { id, public })
    }
}

impl PublicKey {
    fn algorithm(&self) -> Algorithm {
        match self {
            PublicKey::Rsa { .. } => Algorithm::Rs256,
            PublicKey::P256(_) => Algorithm::Es256,
            PublicKey::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn is_of(&self, message: &[u8], bytes: &[u8]) -> bool {
        let verified = match self {
            PublicKey::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
                &signature::RSA_PKCS1_2048_8192_SHA256,
                message,
                bytes,
            ),
            PublicKey::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, bytes)
            }
            PublicKey::Ed25519(point) => UnparsedPublicKey::new(&signature::ED25519, point).verify(message, bytes),
        };
        verified.is_ok()
    }
}

/// Base64 as tokens and keys have it, without padding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}
