//! Commands that have commands: whether JSON was asked for, and which one runs.
//!
//! Lives here: one macro, so that a new command below another is one word in a list.

/// For `struct $group { what: What }`, where each variant of `What` is a command with `to: To`.
macro_rules! subcommands {
    ($group:ident: $($variant:ident),+ $(,)?) => {
        impl $group {
            pub fn json(&self) -> bool {
                match &self.what { $(What::$variant(it) => it.to.json,)+ }
            }

            pub fn run(self, out: &mut crate::out::Out) -> Result<crate::failure::Exit, crate::failure::Failure> {
                match self.what { $(What::$variant(it) => it.run(out),)+ }
            }
        }
    };
}

pub(crate) use subcommands;
