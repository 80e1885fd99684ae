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
    Adopt = "adopt",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What Dragonfly lists as supported of what scripts may want; of `XTRIM` a part, which has
    /// exact trimming by `MINID`.
    const SUPPORTED: [&str; 12] = [
        "EXISTS", "HDEL", "HGET", "HGETALL", "HMGET", "HSET", "PERSIST", "TIME", "UNLINK", "XADD",
        "XRANGE", "XTRIM",
    ];
    /// Lua 5.1 has these, 5.4 does not.
    const GONE: [&str; 6] = ["unpack(", "loadstring", "setfenv", "getn", "math.pow", "bit."];

    /// What stands in the brackets of every `redis.call`.
    fn calls(source: &str) -> Vec<&str> {
        let begins = source.match_indices("redis.call(").map(|(at, call)| at + call.len());
        begins.map(|at| source[at..].split([')', '\n']).next().unwrap_or_default()).collect()
    }

    #[test]
    fn scripts_declare_every_key_and_use_what_dragonfly_supports() {
        for source in SOURCES {
            // Comments say what they like.
            let code: Vec<&str> =
                source.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
            let code = code.join("\n");
            assert!(code.contains("KEYS[") && !code.contains("pcall"), "{source}");
            assert!(!calls(&code).is_empty(), "{source}");
            for call in calls(&code) {
                let (command, rest) = call.split_once(',').unwrap_or((call, ""));
                let command = command.trim_matches('\'');
                assert!(SUPPORTED.contains(&command), "{command} in {source}");
                let key = rest.trim_start();
                assert!(command == "TIME" || key.starts_with("KEYS["), "{call} in {source}");
                let exact = !call.contains('~');
                assert!(command != "XTRIM" || exact && call.contains("'MINID'"), "{call}");
            }
            for word in GONE {
                assert!(!code.contains(word), "{word} in {source}");
            }
        }
    }

    #[test]
    fn an_undeclared_key_would_be_found() {
        assert_eq!(calls("x = redis.call('HGET', name, 'f')\n"), ["'HGET', name, 'f'"]);
    }
}
