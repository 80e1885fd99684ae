//! Every attack on a JWT that we know of, with what it should run into.
//!
//! The attacker is given more than he could have: some of these are *signed by our key*, because
//! a mistake of ours must not become a pass either.

use serde_json::{Value, json};
use waitroom_pass::{Alg, PassClaims, Refused, SigningKey};
use waitroom_verifier::jws;

use crate::{NOW, mutate::Dice};

pub struct Attacker<'a> {
    /// The key that signs: for words that we ourselves might sign by mistake.
    ours: &'a SigningKey,
    /// All that is published.
    jwks: &'a str,
    /// Keys of his own, one of each kind.
    his: Vec<SigningKey>,
}

pub struct Attack {
    pub name: &'static str,
    pub text: String,
    pub expected: Refused,
}

impl<'a> Attacker<'a> {
    pub fn new(ours: &'a SigningKey, jwks: &'a str) -> Self {
        Attacker { ours, jwks, his: Alg::ALL.map(SigningKey::generate).into() }
    }

    /// Signed by our key, whatever it says.
    fn signed(&self, header: &str, payload: &str) -> String {
        self.with(header, payload, |message| self.ours.sign(message))
    }

    fn with(&self, header: &str, payload: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
        let signed =
            format!("{}.{}", jws::encode(header.as_bytes()), jws::encode(payload.as_bytes()));
        let signature = jws::encode(&sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn header(&self) -> Value {
        json!({"alg": self.ours.alg().name(), "typ": "JWT", "kid": self.ours.kid()})
    }
}

pub fn attacks(attacker: &Attacker<'_>, claims: &PassClaims, dice: &mut Dice) -> Vec<Attack> {
    let mut list = vec![];
    let good = serde_json::to_value(claims).expect("JSON");
    algorithms(attacker, &good, dice, &mut list);
    names_of_keys(attacker, &good, dice, &mut list);
    headers(attacker, &good, dice, &mut list);
    signatures(attacker, &good, dice, &mut list);
    words(attacker, &good, dice, &mut list);
    spellings(attacker, &good, dice, &mut list);
    list
}

/// RSA signs slowly, so of the texts signed by it only a few are made in each round. With the
/// other algorithms all of them are.
fn rarely(attacker: &Attacker<'_>, dice: &mut Dice) -> bool {
    attacker.ours.alg() == Alg::Rs256 && dice.below(20) != 0
}

fn algorithms(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    let payload = good.to_string();
    let ours = attacker.ours.alg().name();
    let mut add = |name, text| list.push(Attack { name, text, expected: Refused::AlgWrong });
    for alg in ["none", "None", "NONE", "nOnE", "", " ", "null", "HS256", "es256", "ES256K", "RSA"]
    {
        let mut header = attacker.header();
        header["alg"] = alg.into();
        add(
            "another algorithm, no signature",
            attacker.with(&header.to_string(), &payload, |_| vec![]),
        );
        let junk = dice.bytes(64);
        add(
            "another algorithm, junk",
            attacker.with(&header.to_string(), &payload, |_| junk.clone()),
        );
    }
    for alg in Alg::ALL.map(Alg::name).into_iter().chain(["PS256", "ES384"]) {
        if alg == ours {
            continue;
        }
        let mut header = attacker.header();
        header["alg"] = alg.into();
        for his in &attacker.his {
            if his.alg() != Alg::Rs256 {
                add("his algorithm", attacker.with(&header.to_string(), &payload, |m| his.sign(m)));
            }
        }
    }
    // Key confusion: what everybody knows, taken for a shared secret.
    let jwk = attacker.ours.jwk();
    let x = jwk.get("x").or(jwk.get("n")).and_then(Value::as_str).expect("a public number");
    let raw = jws::decode(x).expect("base64url");
    let whole = jwk.to_string();
    let known = [attacker.jwks.as_bytes(), whole.as_bytes(), x.as_bytes(), &raw, b"", b"secret"];
    for secret in known {
        for (alg, sha) in [
            ("HS256", aws_lc_rs::hmac::HMAC_SHA256),
            ("HS384", aws_lc_rs::hmac::HMAC_SHA384),
            ("HS512", aws_lc_rs::hmac::HMAC_SHA512),
        ] {
            let mut header = attacker.header();
            header["alg"] = alg.into();
            let key = aws_lc_rs::hmac::Key::new(sha, secret);
            let hmac = |message: &[u8]| aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec();
            add("a public key as a secret", attacker.with(&header.to_string(), &payload, hmac));
        }
    }
    // And one of the right length under the right name.
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA512, attacker.jwks.as_bytes());
    let hmac = |message: &[u8]| aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec();
    let text = attacker.with(&attacker.header().to_string(), &payload, hmac);
    list.push(Attack { name: "an HMAC as a signature", text, expected: Refused::SignatureWrong });
}

fn names_of_keys(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    let payload = good.to_string();
    let mut add = |name, text, expected| list.push(Attack { name, text, expected });
    let strange = ["", "none", "../../dev/null", "' OR 1=1", "\0", attacker.his[0].kid()];
    for kid in strange {
        let mut header = attacker.header();
        header["kid"] = kid.into();
        let junk = dice.bytes(64);
        let text = attacker.with(&header.to_string(), &payload, |_| junk.clone());
        add("a key that nobody published", text, Refused::KeyUnknown);
    }
    let mut nameless = attacker.header();
    nameless.as_object_mut().expect("an object").remove("kid");
    let junk = dice.bytes(64);
    let text = attacker.with(&nameless.to_string(), &payload, |_| junk.clone());
    add("no key named", text, Refused::KeyUnknown);
    for kid in [json!(null), json!(7), json!([attacker.ours.kid()]), json!({"a": 1})] {
        let mut header = attacker.header();
        header["kid"] = kid;
        let text = attacker.with(&header.to_string(), &payload, |_| vec![0; 64]);
        add("a name that is no text", text, Refused::Malformed);
    }
    // The name of another published key, over our signature; and his own signature under the
    // name of every published key of that kind.
    let jwks: Value = serde_json::from_str(attacker.jwks).expect("JSON");
    for jwk in jwks["keys"].as_array().expect("a list") {
        let header = json!({"alg": jwk["alg"], "typ": "JWT", "kid": jwk["kid"]}).to_string();
        let his = attacker.his.iter().find(|his| jwk["alg"] == his.alg().name());
        let his = his.expect("he has one of each kind");
        if his.alg() != Alg::Rs256 {
            let text = attacker.with(&header, &payload, |message| his.sign(message));
            add("his signature under a published name", text, Refused::SignatureWrong);
        }
        if jwk["kid"] != attacker.ours.kid() && !rarely(attacker, dice) {
            let text = attacker.signed(&header, &payload);
            add("our signature under another name", text, Refused::SignatureWrong);
        }
    }
}

fn headers(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    let payload = good.to_string();
    let junk = dice.bytes(64);
    let unsigned = |header: &str| attacker.with(header, &payload, |_| junk.clone());
    let mut add = |name, text, expected| list.push(Attack { name, text, expected });
    for typ in ["", "jwt", "JWS", "at+jwt", "JWT "] {
        let mut header = attacker.header();
        header["typ"] = typ.into();
        add("another type", unsigned(&header.to_string()), Refused::TypeWrong);
    }
    for (name, value) in [("crit", json!(["b64"])), ("crit", json!([])), ("b64", json!(false))] {
        let mut header = attacker.header();
        header[name] = value;
        add("an extension", unsigned(&header.to_string()), Refused::CritUnknown);
    }
    // A key that comes with the token, or from where the token says.
    let his = attacker.his.iter().find(|his| his.alg() == attacker.ours.alg());
    let his = his.expect("he has one of each kind");
    if his.alg() != Alg::Rs256 || dice.below(20) == 0 {
        let mut header = attacker.header();
        header["jwk"] = his.jwk().clone();
        header["jku"] = "https://evil.example/jwks.json".into();
        header["x5u"] = "https://evil.example/x.pem".into();
        let text = attacker.with(&header.to_string(), &payload, |message| his.sign(message));
        add("bring your own key", text, Refused::SignatureWrong);
    }
    let (alg, kid) = (attacker.ours.alg().name(), attacker.ours.kid());
    for header in [
        format!(r#"{{"alg":"none","alg":"{alg}","typ":"JWT","kid":"{kid}"}}"#),
        format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"a","kid":"{kid}"}}"#),
        format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"{kid}","x":1,"x":1}}"#),
        format!(r#"["{alg}","JWT","{kid}"]"#),
        format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"{kid}"}} "x""#),
        format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"{kid}""#),
        format!(r#"{{"alg":{{"a":"{alg}"}},"typ":"JWT","kid":"{kid}"}}"#),
        format!(r#"{{"alg":"{alg}","typ":["JWT"],"kid":"{kid}"}}"#),
        "{}".to_owned(),
        "null".to_owned(),
        String::new(),
        format!("{}{}", "[".repeat(900), "]".repeat(900)),
    ] {
        add("a header out of shape", unsigned(&header), Refused::Malformed);
    }
}

fn signatures(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    let header = attacker.header().to_string();
    let payload = good.to_string();
    let len = match attacker.ours.alg() {
        Alg::Rs256 => 256,
        _ => 64,
    };
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<u8> = (0..32)
        .map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect();
    let mut one = vec![0; 32];
    one[31] = 1;
    let made = [
        vec![],
        vec![0; len],
        vec![0xff; len],
        vec![0; 1],
        vec![0; len - 1],
        vec![0; len + 1],
        dice.bytes(len),
        dice.bytes(2 * len),
        [order.clone(), order.clone()].concat(),
        [vec![0; 32], one.clone()].concat(),
        [one.clone(), vec![0; 32]].concat(),
        [one.clone(), one].concat(),
        [order, vec![1; 32]].concat(),
        vec![0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01],
    ];
    for signature in made {
        let text = attacker.with(&header, &payload, |_| signature.clone());
        list.push(Attack { name: "a made-up signature", text, expected: Refused::SignatureWrong });
    }
    if !rarely(attacker, dice) {
        let longer = attacker.with(&header, &payload, |message| {
            let mut signature = attacker.ours.sign(message);
            signature.push(0);
            signature
        });
        let name = "a good signature and one byte more";
        list.push(Attack { name, text: longer, expected: Refused::SignatureWrong });
    }
}

/// Signed by our own key, for the day on which we make a mistake.
fn words(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    use Refused::{ClaimsWrong, Expired, NotYet, RoomOther};
    let later = NOW + 600;
    let swaps = [
        ("exp", json!(later.to_string()), ClaimsWrong),
        ("exp", json!(later as f64 + 0.5), ClaimsWrong),
        ("exp", json!(1e300), ClaimsWrong),
        ("exp", json!(-1), ClaimsWrong),
        ("exp", json!(u64::MAX), ClaimsWrong),
        ("exp", json!(later * 1000), ClaimsWrong),
        ("exp", json!(null), ClaimsWrong),
        ("exp", json!([later]), ClaimsWrong),
        ("exp", json!({"$gt": 0}), ClaimsWrong),
        ("exp", json!(true), ClaimsWrong),
        ("exp", json!(NOW), ClaimsWrong),
        ("iat", json!("0"), ClaimsWrong),
        ("iat", json!(1.0), ClaimsWrong),
        ("iat", json!(null), ClaimsWrong),
        ("iat", json!(NOW + 301), NotYet),
        ("sub", json!(7), ClaimsWrong),
        ("sub", json!(""), ClaimsWrong),
        ("sub", json!("F6C27F05-D2AF-F92A-5843-7F42F274DA53"), ClaimsWrong),
        ("sub", json!(null), ClaimsWrong),
        ("room", json!("other"), RoomOther),
        ("room", json!("sale\0"), RoomOther),
        ("room", json!("Sale"), RoomOther),
        ("room", json!(["sale"]), ClaimsWrong),
        ("room", json!(null), ClaimsWrong),
        ("aud", json!("elsewhere"), ClaimsWrong),
        ("nbf", json!(0), ClaimsWrong),
        ("bnd", json!(null), ClaimsWrong),
        ("bnd", json!({"unheard_of": "x"}), ClaimsWrong),
        ("bnd", json!({"nonce": "x"}), Refused::BindingMissing),
        ("user_id", json!(1), ClaimsWrong),
    ];
    let header = attacker.header().to_string();
    let mut add = |dice: &mut Dice, payload: &str, expected| {
        if !rarely(attacker, dice) {
            let text = attacker.signed(&header, payload);
            list.push(Attack { name: "our own mistake", text, expected });
        }
    };
    for (name, value, expected) in swaps {
        let mut claims = good.clone();
        claims[name] = value;
        add(dice, &claims.to_string(), expected);
    }
    for name in ["sub", "room", "iat", "exp"] {
        let mut claims = good.clone();
        let value = claims.as_object_mut().expect("an object").remove(name).expect("a claim");
        add(dice, &claims.to_string(), ClaimsWrong);
        let text = good.to_string();
        let doubled = format!(r#"{{"{name}":{value},{}"#, &text[1..]);
        add(dice, &doubled, ClaimsWrong);
    }
    let mut over = good.clone();
    (over["iat"], over["exp"]) = (json!(NOW - 600), json!(NOW));
    add(dice, &over.to_string(), Expired);
    for payload in ["", "null", "[]", "{}", "7", "{", "\"x\"", "[1,2,3,4]"] {
        add(dice, payload, ClaimsWrong);
    }
}

fn spellings(attacker: &Attacker<'_>, good: &Value, dice: &mut Dice, list: &mut Vec<Attack>) {
    let mut add = |name, text, expected| list.push(Attack { name, text, expected });
    let huge = "a".repeat(4097 + dice.below(4096));
    let mut big = good.clone();
    big["more"] = huge.clone().into();
    let header = attacker.header().to_string();
    let bulky = attacker.with(&header, &big.to_string(), |_| vec![0; 64]);
    add("a huge pass", bulky, Refused::TooLong);
    add("a huge nothing", huge, Refused::TooLong);
    let text = attacker.with(&header, &good.to_string(), |_| vec![0; 64]);
    let (signed, signature) = text.rsplit_once('.').expect("three parts");
    let (head, body) = signed.split_once('.').expect("three parts");
    for broken in [
        format!("{head}.{body}"),
        format!("{head}..{signature}."),
        format!("{head}.{body}.{signature}.{signature}.{signature}"),
        format!("{head}=.{body}.{signature}"),
        format!("{head}.{body}.{signature}="),
        format!("{head}.{body}.{signature}=="),
        format!(" {text}"),
        format!("{text}\n"),
        format!("Bearer {text}"),
        format!("\"{text}\""),
        text.replace('.', ".."),
        text.replace('.', ":"),
    ] {
        add("not three parts in one spelling", broken, Refused::Malformed);
    }
}
