//! Access tokens of other issuers: JSON Web Tokens, read and checked. No clock and no sockets.

use serde_json::{Map, Value};
use sinew_tool::text::clean_line;

use crate::keys::{Algorithm, KeySet, SignatureProblem, decode};

/// Bytes of a token. A head of a request has 64 KiB; the longest tokens, with lists of groups, have a few.
const MAX_TOKEN: usize = 16 << 10;
/// Seconds by which the clocks of issuer and gateway may differ.
const CLOCK_SKEW: i64 = 60;
/// What `typ` may say of an access token. Tokens for other purposes, such as logging out, have others.
const TYPES: [&str; 4] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];

/// Why a token is refused. The texts are ours: nothing of the token is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("it is not a signed token of three parts")]
    Form,
    #[error("it is signed in a way that is not accepted; expected RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("it is not an access token")]
    Type,
    #[error("it has parts that must be understood and are not known (`crit`)")]
    Critical,
    #[error("it is bound to a key of its client (`cnf`), which this gateway does not check")]
    Bound,
    #[error("its issuer is another one")]
    Issuer,
    #[error("it is for another service (`aud`)")]
    Audience,
    #[error("it says no time at which it expires")]
    Endless,
    #[error("it expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
    #[error("it is signed with a key that its issuer does not have")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it does not say whose it is")]
    Nobody,
}

/// What a token must say.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    pub issuer: &'a str,
    /// One of them must be the token's.
    pub audiences: &'a [String],
}

/// A token that was read. Nothing in it is true before [`Token::verify`].
#[derive(Debug)]
pub struct Token<'a> {
    signed: &'a str,
    algorithm: Algorithm,
    key: Option<String>,
    claims: Map<String, Value>,
    signature: Vec<u8>,
}

impl Token<'_> {
    /// Whether a text has the form of a token, so that it is worth reading.
    pub fn is_like(text: &str) -> bool {
        text.len() <= MAX_TOKEN && text.starts_with("eyJ") && text.split('.').count() == 3
    }

    pub fn parse(text: &str) -> Result<Token<'_>, TokenError> {
        if text.len() > MAX_TOKEN {
            return Err(TokenError::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Form)?;
        let [header, claims] = [header, claims].map(object);
        let (header, claims) = (header.ok_or(TokenError::Form)?, claims.ok_or(TokenError::Form)?);
        let signature = decode(signature).filter(|bytes| !bytes.is_empty()).ok_or(TokenError::Form)?;
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let algorithm = text("alg").and_then(Algorithm::parse).ok_or(TokenError::Algorithm)?;
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(TokenError::Critical);
        }
        let is_known =
            |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind)));
        if !header.get("typ").is_none_or(is_known) {
            return Err(TokenError::Type);
        }
        let key = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(TokenError::Form),
        };
        Ok(Token { signed, algorithm, key, claims, signature })
    }

    /// Checks what the token says of itself, at a time in seconds of Unix time.
    pub fn check(&self, expected: &Expected<'_>, now: i64) -> Result<(), TokenError> {
        if self.text("iss") != Some(expected.issuer) {
            return Err(TokenError::Issuer);
        }
        let is_ours = |audience: &Value| {
            audience.as_str().is_some_and(|audience| expected.audiences.iter().any(|ours| ours == audience))
        };
        let for_us = match self.claims.get("aud") {
            Some(Value::Array(several)) => several.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        };
        if !for_us {
            return Err(TokenError::Audience);
        }
        // What an issuer tells a client about its user opens nothing, although it is signed with the same keys.
        if ["nonce", "at_hash", "c_hash"].iter().any(|claim| self.claims.contains_key(*claim)) {
            return Err(TokenError::Type);
        }
        // Whoever holds such a token has not shown that it is theirs.
        if self.claims.contains_key("cnf") {
            return Err(TokenError::Bound);
        }
        let expires = self.expires().ok_or(TokenError::Endless)?;
        if expires.saturating_add(CLOCK_SKEW) <= now {
            return Err(TokenError::Expired);
        }
        for name in ["nbf", "iat"] {
            let Some(begins) = self.claims.get(name) else { continue };
            match seconds(begins) {
                Some(begins) if begins.saturating_sub(CLOCK_SKEW) <= now => {}
                _ => return Err(TokenError::Early),
            }
        }
        Ok(())
    }

    pub fn verify(&self, keys: &KeySet) -> Result<(), TokenError> {
        keys.verify(self.key.as_deref(), self.algorithm, self.signed.as_bytes(), &self.signature).map_err(|problem| {
            match problem {
                SignatureProblem::UnknownKey => TokenError::UnknownKey,
                SignatureProblem::Wrong => TokenError::Signature,
            }
        })
    }

    /// When it expires, in seconds of Unix time.
    pub fn expires(&self) -> Option<i64> {
        self.claims.get("exp").and_then(seconds)
    }

    pub fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim).and_then(Value::as_str)
    }

    /// The texts of a claim, whether it has one or a list.
    pub fn texts(&self, claim: &str) -> Vec<&str> {
        match self.claims.get(claim) {
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one],
            _ => Vec::new(),
        }
    }

    /// Whether a claim says no; one that is missing says nothing.
    pub fn denies(&self, claim: &str) -> bool {
        self.claims.get(claim).is_some_and(|value| value != &Value::Bool(true) && value != "true")
    }

    pub fn scopes(&self) -> Vec<&str> {
        let scopes = self.text("scope").into_iter().flat_map(str::split_ascii_whitespace);
        scopes.chain(self.texts("scp").into_iter().flat_map(str::split_ascii_whitespace)).collect()
    }

    /// A claim as a name: a line of at most 128 characters that can be shown.
    pub fn name(&self, claim: &str) -> Result<String, TokenError> {
        let text = self.text(claim).map(str::trim).filter(|text| !text.is_empty()).ok_or(TokenError::Nobody)?;
        // Two callers must not come to the same name by what is left out.
        match clean_line(text, 128) == text && text.len() <= 128 {
            true => Ok(text.to_owned()),
            false => Err(TokenError::Nobody),
        }
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode(part)?).ok()
}

/// A time of a token. Some issuers write fractions.
fn seconds(value: &Value) -> Option<i64> {
    // 2^53 seconds: farther times are mistakes, and no date.
    const MAX: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64().filter(|number| (0.0..MAX).contains(number))?;
    Some(number as i64)
}

#[cfg(test)]
pub(crate) mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    };
    use serde_json::json;

    use super::*;

    pub(crate) const NOW: i64 = 1_800_000_000;
    pub(crate) const ISSUER: &str = "https://login.example";
    pub(crate) const US: &str = "https://home.example/mcp";

    /// A key made for these tests alone.
    const RSA_KEY: &str = include_str!("rsa_test_key.txt");

    /// An issuer of tokens with a key of each kind.
    pub(crate) struct TestIssuer {
        ed: Ed25519KeyPair,
        ec: EcdsaKeyPair,
        rsa: RsaKeyPair,
    }

    fn encode(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    impl TestIssuer {
        pub(crate) fn new() -> TestIssuer {
            let random = SystemRandom::new();
            let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
            let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let rsa: String = RSA_KEY.split_whitespace().collect();
            let rsa = base64::engine::general_purpose::STANDARD.decode(rsa).unwrap();
            TestIssuer {
                ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
                ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
                rsa: RsaKeyPair::from_pkcs8(&rsa).unwrap(),
            }
        }

        pub(crate) fn jwks(&self) -> Value {
            let point = self.ec.public_key().as_ref();
            let rsa = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
            json!({"keys": [
                {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(self.ed.public_key())},
                {"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": encode(&point[1..33]), "y": encode(&point[33..])},
                {"kty": "RSA", "kid": "rsa", "alg": "RS256", "n": encode(rsa.n), "e": encode(rsa.e)},
            ]})
        }

        pub(crate) fn keys(&self) -> KeySet {
            KeySet::parse(self.jwks().to_string().as_bytes()).unwrap()
        }

        /// Signs with the key that the header names.
        pub(crate) fn sign(&self, header: Value, claims: &Value) -> String {
            let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
            let (message, random) = (signed.as_bytes(), SystemRandom::new());
            let signature = match header["kid"].as_str().unwrap_or("ed") {
                "ec" => self.ec.sign(&random, message).unwrap().as_ref().to_vec(),
                "rsa" => {
                    let mut signature = vec![0; self.rsa.public().modulus_len()];
                    self.rsa.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                    signature
                }
                _ => self.ed.sign(message).as_ref().to_vec(),
            };
            format!("{signed}.{}", encode(signature))
        }

        pub(crate) fn token(&self, claims: &Value) -> String {
            self.sign(json!({"alg": "EdDSA", "kid": "ed", "typ": "at+jwt"}), claims)
        }
    }

    pub(crate) fn claims() -> Value {
        json!({"iss": ISSUER, "aud": US, "sub": "ada", "exp": NOW + 300, "scope": "openid tools"})
    }

    fn check(issuer: &TestIssuer, text: &str) -> Result<(), TokenError> {
        let token = Token::parse(text)?;
        token.check(&Expected { issuer: ISSUER, audiences: &[US.to_owned()] }, NOW)?;
        token.verify(&issuer.keys())
    }

    #[test]
    fn a_token_of_each_algorithm_is_verified() {
        let issuer = TestIssuer::new();
        for (algorithm, key) in [("EdDSA", "ed"), ("ES256", "ec"), ("RS256", "rsa")] {
            let text = issuer.sign(json!({"alg": algorithm, "kid": key}), &claims());
            assert_eq!(check(&issuer, &text), Ok(()), "{algorithm}");
            // Without the name of the key, all of the algorithm are tried.
            let (signed, signature) = text.rsplit_once('.').unwrap();
            let other = if signature.starts_with('A') { "B" } else { "A" };
            let changed = format!("{signed}.{other}{}", &signature[1..]);
            assert_eq!(check(&issuer, &changed), Err(TokenError::Signature), "{algorithm}");
        }
        assert_eq!(check(&issuer, &issuer.sign(json!({"alg": "EdDSA"}), &claims())), Ok(()));
    }

    #[test]
    fn the_key_decides_the_algorithm_and_not_the_token() {
        let issuer = TestIssuer::new();
        for (algorithm, key) in [("RS256", "ec"), ("ES256", "rsa"), ("EdDSA", "rsa"), ("RS256", "ed")] {
            let text = issuer.sign(json!({"alg": algorithm, "kid": key}), &claims());
            assert_eq!(check(&issuer, &text), Err(TokenError::UnknownKey), "{algorithm} {key}");
        }
        for algorithm in ["none", "None", "HS256", "HS512", "PS256", "RS512", "ES384", "rs256", ""] {
            let text = issuer.sign(json!({"alg": algorithm, "kid": "rsa"}), &claims());
            assert_eq!(check(&issuer, &text), Err(TokenError::Algorithm), "{algorithm}");
        }
        // The public key of the issuer as a shared secret, the old trick.
        let signed = format!("{}.{}", encode(r#"{"alg":"HS256","kid":"rsa"}"#), encode(claims().to_string()));
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, issuer.rsa.public().as_ref());
        let text = format!("{signed}.{}", encode(ring::hmac::sign(&secret, signed.as_bytes())));
        assert_eq!(check(&issuer, &text), Err(TokenError::Algorithm));
        // A key that comes with the token is not the issuer's.
        let other = TestIssuer::new();
        let own_key = other.jwks()["keys"][0].clone();
        let text = other.sign(json!({"alg": "EdDSA", "kid": "ed", "jwk": own_key}), &claims());
        assert_eq!(check(&issuer, &text), Err(TokenError::Signature));
    }

    #[test]
    fn what_a_token_says_must_fit() {
        let issuer = TestIssuer::new();
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value,
            }
            check(&issuer, &issuer.token(&claims))
        };
        for fine in [json!([US]), json!(["other", US]), json!(US)] {
            assert_eq!(with("aud", fine), Ok(()));
        }
        assert_eq!(with("exp", json!(NOW - 59)), Ok(()), "clocks differ a little");
        assert_eq!(with("nbf", json!(NOW + 60)), Ok(()));
        assert_eq!(with("exp", json!(1.5e9)), Err(TokenError::Expired));
        let wrong = [
            ("iss", json!("https://login.example/"), TokenError::Issuer),
            ("iss", json!("https://evil.example"), TokenError::Issuer),
            ("iss", json!([ISSUER]), TokenError::Issuer),
            ("iss", Value::Null, TokenError::Issuer),
            ("aud", json!("https://home.example/mcp/"), TokenError::Audience),
            ("aud", json!("https://home.example"), TokenError::Audience),
            ("aud", json!([]), TokenError::Audience),
            ("aud", json!({"x": US}), TokenError::Audience),
            ("aud", Value::Null, TokenError::Audience),
            ("exp", json!(NOW - 60), TokenError::Expired),
            ("exp", json!("tomorrow"), TokenError::Endless),
            ("exp", json!(1e300), TokenError::Endless),
            ("exp", json!(-5), TokenError::Endless),
            ("exp", Value::Null, TokenError::Endless),
            ("nbf", json!(NOW + 61), TokenError::Early),
            ("nbf", json!("x"), TokenError::Early),
            ("iat", json!(NOW + 3_600), TokenError::Early),
            ("cnf", json!({"jkt": "x"}), TokenError::Bound),
            ("nonce", json!("x"), TokenError::Type),
            ("at_hash", json!("x"), TokenError::Type),
        ];
        for (name, value, error) in wrong {
            assert_eq!(with(name, value.clone()), Err(error), "{name} {value}");
        }
    }

    #[test]
    fn what_a_header_says_must_be_understood() {
        let issuer = TestIssuer::new();
        let with = |name: &str, value: Value| {
            let mut header = json!({"alg": "EdDSA", "kid": "ed"});
            header[name] = value;
            check(&issuer, &issuer.sign(header, &claims()))
        };
        for kind in ["JWT", "at+jwt", "application/at+jwt", "AT+JWT"] {
            assert_eq!(with("typ", json!(kind)), Ok(()), "{kind}");
        }
        for kind in [json!("dpop+jwt"), json!("logout+jwt"), json!(""), json!(5)] {
            assert_eq!(with("typ", kind), Err(TokenError::Type));
        }
        assert_eq!(with("crit", json!(["exp"])), Err(TokenError::Critical));
        assert_eq!(with("b64", json!(false)), Err(TokenError::Critical));
        assert_eq!(with("kid", json!("other")), Err(TokenError::UnknownKey));
        assert_eq!(with("kid", json!(["ed"])), Err(TokenError::Form));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let issuer = TestIssuer::new();
        let fine = issuer.token(&claims());
        let (signed, signature) = fine.rsplit_once('.').unwrap();
        let wrong = [
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            "a.b.c".to_owned(),
            format!("{signed}."),
            format!("{fine}."),
            format!("{fine}.{signature}"),
            format!("{fine}="),
            fine.replace('.', "|"),
            "eyJ".repeat(10_000),
        ];
        for text in wrong {
            let refused = check(&issuer, &text);
            assert!(matches!(refused, Err(TokenError::Form)), "{text:.40}: {refused:?}");
        }
    }

    #[test]
    fn a_name_is_a_line_that_can_be_shown() {
        let issuer = TestIssuer::new();
        let name = |name: Value| {
            let mut claims = claims();
            claims["email"] = name;
            Token::parse(&issuer.token(&claims)).unwrap().name("email")
        };
        assert_eq!(name(json!("ada@home.example")), Ok("ada@home.example".to_owned()));
        for wrong in [json!(""), json!("  "), json!("a\nb"), json!("\u{202e}ada"), json!("a".repeat(129)), json!(5)] {
            assert_eq!(name(wrong.clone()), Err(TokenError::Nobody), "{wrong}");
        }
    }

    #[test]
    fn keys_that_cannot_be_used_are_left_out() {
        let issuer = TestIssuer::new();
        let keys = |keys: Value| KeySet::parse(keys.to_string().as_bytes()).map(|keys| keys.len());
        assert_eq!(keys(issuer.jwks()), Ok(3));
        let rsa = &issuer.jwks()["keys"][2];
        let with = |name: &str, value: Value| {
            let mut key = rsa.clone();
            key[name] = value;
            keys(json!({"keys": [key]}))
        };
        assert_eq!(with("use", json!("sig")), Ok(1));
        assert_eq!(with("use", json!("enc")), Ok(0));
        assert_eq!(with("key_ops", json!(["sign"])), Ok(0));
        assert_eq!(with("key_ops", json!(["verify"])), Ok(1));
        assert_eq!(with("alg", json!("PS256")), Ok(0));
        assert_eq!(with("alg", json!("HS256")), Ok(0));
        assert_eq!(with("n", json!("A".repeat(4_000))), Ok(0), "nothing but zeros");
        assert_eq!(with("n", json!("_".repeat(4_000))), Ok(0));
        assert_eq!(with("kty", json!("oct")), Ok(0));
        assert_eq!(with("n", json!(5)), Ok(0));
        assert_eq!(keys(json!({"keys": vec![rsa; 1_000]})), Ok(64));
        for wrong in ["", "[]", "{}", "{\"keys\": 5}", "\u{0}"] {
            assert!(KeySet::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let small = json!({"keys": [{"kty": "RSA", "kid": "rsa", "n": encode([0xc1; 64]), "e": "AQAB"}]});
        let keys = KeySet::parse(small.to_string().as_bytes()).unwrap();
        let text = issuer.sign(json!({"alg": "RS256", "kid": "rsa"}), &claims());
        assert_eq!(Token::parse(&text).unwrap().verify(&keys), Err(TokenError::Signature), "512 bits");
    }
}
