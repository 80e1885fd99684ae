//! Reading answers: what our scripts return, and nothing else.

use redis::Value;

use crate::trouble::Trouble;

/// The parts of an answer, taken one by one.
#[derive(Debug)]
pub struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    pub fn of(value: Value) -> Result<Parts, Trouble> {
        match value {
            Value::Array(parts) => Ok(Parts(parts.into_iter())),
            other => Err(odd(&other)),
        }
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, Trouble> {
        match self.0.next() {
            Some(value) => bytes(value),
            None => Err(Trouble::Damaged("an answer of Redis is too short".into())),
        }
    }

    pub fn text(&mut self) -> Result<String, Trouble> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| Trouble::Damaged("Redis answered no text".into()))
    }

    pub fn number(&mut self) -> Result<u64, Trouble> {
        let text = self.text()?;
        text.parse().map_err(|_| Trouble::Damaged(format!("Redis answered {text:?}, no number")))
    }

    pub fn chain(&mut self) -> Result<waitroom_store::Chain, Trouble> {
        let bytes = self.bytes()?;
        let bytes =
            bytes.try_into().map_err(|_| Trouble::Damaged("a chain has 32 bytes".into()))?;
        Ok(waitroom_store::Chain(bytes))
    }

    pub fn parts(&mut self) -> Result<Parts, Trouble> {
        match self.0.next() {
            Some(value) => Parts::of(value),
            None => Err(Trouble::Damaged("an answer of Redis is too short".into())),
        }
    }

    pub fn left(&self) -> usize {
        self.0.len()
    }
}

pub fn bytes(value: Value) -> Result<Vec<u8>, Trouble> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        Value::Int(number) => Ok(number.to_string().into_bytes()),
        other => Err(odd(&other)),
    }
}

fn odd(value: &Value) -> Trouble {
    let shown: String = format!("{value:?}").chars().take(120).collect();
    Trouble::Damaged(format!("Redis answered what we do not understand: {shown}"))
}

/// Numbers as scripts compare them: digits, all of one length.
pub fn digits(number: u64) -> String {
    format!("{number:020}")
}
