//! JSON objects, read strictly.
//!
//! Two readers that take different ones of two equal names see two different documents, and
//! that is how a signed text comes to mean two things. So a name occurs once, at every depth;
//! and where an object is asked for, an array of its values is not taken for one.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// Reads a JSON object whose names are unique, or nothing.
pub fn object<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Option<T> {
    serde_json::from_slice::<UniqueObject>(bytes).ok()?;
    serde_json::from_slice(bytes).ok()
}

/// For an optional field: it may be left out, but `null` is no value of it. Goes with
/// `#[serde(default, deserialize_with = "…")]`.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// An object at the top, whatever is inside.
struct UniqueObject;

impl<'de> Deserialize<'de> for UniqueObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectOnly)
    }
}

struct ObjectOnly;

impl<'de> Visitor<'de> for ObjectOnly {
    type Value = UniqueObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object whose names are unique")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UniqueObject, A::Error> {
        unique_names(map).map(|()| UniqueObject)
    }
}

/// Any value, as long as no object in it has a name twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON whose names are unique")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unique, A::Error> {
        while seq.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Unique, A::Error> {
        unique_names(map).map(|()| Unique)
    }
}

fn unique_names<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    let mut names = BTreeSet::new();
    while let Some(name) = map.next_key::<String>()? {
        map.next_value::<Unique>()?;
        if !names.insert(name) {
            return Err(A::Error::custom("a name occurs twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Claims {
        exp: u64,
        #[serde(default, deserialize_with = "present")]
        user: Option<String>,
    }

    #[test]
    fn a_name_that_occurs_twice_is_refused_at_every_depth_and_in_every_spelling() {
        for text in [
            r#"{"exp":1,"exp":1}"#,
            r#"{"exp":1,"e\u0078p":2}"#,
            r#"{"exp":1,"other":1,"other":2}"#,
            r#"{"exp":1,"a":[{"b":{"c":1,"c":2}}]}"#,
        ] {
            assert_eq!(object::<Claims>(text.as_bytes()), None, "{text}");
        }
        assert!(object::<Claims>(br#"{"exp":1,"a":{"exp":2}}"#).is_some());
    }

    #[test]
    fn only_a_whole_object_is_an_object() {
        for text in ["", "[1]", "1", "null", r#"{"exp":1"#, r#"{"exp":1} x"#, r#"{"exp":1}{}"#] {
            assert_eq!(object::<Claims>(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_number_is_an_integer_and_null_is_no_value() {
        for text in [
            r#"{"exp":"1"}"#,
            r#"{"exp":1.0}"#,
            r#"{"exp":1e3}"#,
            r#"{"exp":-1}"#,
            r#"{"exp":18446744073709551616}"#,
            r#"{"exp":[1]}"#,
            r#"{"exp":null}"#,
            r#"{"exp":1,"user":null}"#,
            r#"{"exp":1,"user":7}"#,
        ] {
            assert_eq!(object::<Claims>(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_rather_than_followed() {
        let text = format!(r#"{{"exp":1,"a":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert_eq!(object::<Claims>(text.as_bytes()), None);
    }
}
