//! Our scripts, and one call of one.

use redis::Cmd;

macro_rules! scripts {
    ($($name:ident = $file:literal),* $(,)?) => {
        /// Each is a file that says on top what it takes, returns and keeps.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Script { $($name),* }

        /// In the order of the enum: a connection knows their hashes by it.
        pub const SOURCES: &[&str] = &[$(include_str!(concat!("scripts/", $file, ".lua"))),*];
    };
}

scripts! {
    Append = "append",
    Commit = "commit",
    Tip = "tip",
    Read = "read",
    Lease = "lease",
    Hold = "hold",
    Holder = "holder",
    Kept = "kept",
    Keep = "keep",
    Behind = "behind",
    Remove = "remove",
    Members = "members",
}

/// What is asked of a server about keys of one slot.
#[derive(Debug, Clone)]
pub enum Call {
    Script {
        script: Script,
        keys: Vec<String>,
        args: Vec<Vec<u8>>,
    },
    /// A plain command; its first argument is its key.
    Plain {
        name: &'static str,
        key: String,
        args: Vec<Vec<u8>>,
    },
}

impl Call {
    pub fn script<A: Into<Vec<u8>>>(
        script: Script,
        keys: &[String],
        args: impl IntoIterator<Item = A>,
    ) -> Call {
        let args = args.into_iter().map(Into::into).collect();
        Call::Script { script, keys: keys.to_vec(), args }
    }

    pub fn plain(name: &'static str, key: String, args: &[&[u8]]) -> Call {
        Call::Plain { name, key, args: args.iter().map(|arg| arg.to_vec()).collect() }
    }

    /// What decides which server is asked.
    pub fn key(&self) -> &str {
        match self {
            Call::Script { keys, .. } => &keys[0],
            Call::Plain { key, .. } => key,
        }
    }

    /// As a command, for a connection whose server knows the scripts by `hashes`.
    pub fn command(&self, hashes: &[String]) -> Cmd {
        match self {
            Call::Script { script, keys, args } => {
                let mut command = redis::cmd("EVALSHA");
                command.arg(&hashes[*script as usize]).arg(keys.len()).arg(keys).arg(args);
                command
            }
            Call::Plain { name, key, args } => {
                let mut command = redis::cmd(name);
                command.arg(key).arg(args);
                command
            }
        }
    }
}
