//! The way to Kafka's brokers: how it is secured, and who we are there.
//!
//! Lives here: what `[events.kafka]`, `[events.mirror]` and the command line say of it, which is the
//! same everywhere, what does not fit together, and the outbox's words for it.

use std::path::PathBuf;

use waitroom_outbox::kafka::{Link, Mechanism, Sasl, Tls};
use waitroom_outbox::mirror::Access;

use super::sections::{EventsKafka, EventsMirror, KafkaSasl};

/// Keys of the same names, but for the file with the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub tls: bool,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub sasl: KafkaSasl,
    pub user: Option<String>,
    pub password_file: Option<PathBuf>,
}

impl Way {
    pub fn of_events(of: &EventsKafka) -> Way {
        Way {
            tls: of.tls,
            ca: of.tls_ca.clone(),
            cert: of.tls_cert.clone(),
            key: of.tls_key.clone(),
            sasl: of.sasl,
            user: of.user.clone(),
            password_file: of.password_file.clone(),
        }
    }

    pub fn of_mirror(of: &EventsMirror) -> Way {
        Way {
            tls: of.tls,
            ca: of.tls_ca.clone(),
            cert: of.tls_cert.clone(),
            key: of.tls_key.clone(),
            sasl: of.sasl,
            user: of.user.clone(),
            password_file: of.secret_file.clone(),
        }
    }

    /// Whether anything is said that only Kafka understands.
    pub fn is_special(&self) -> bool {
        let named = [&self.ca, &self.cert, &self.key].iter().any(|it| it.is_some());
        self.tls || named || self.sasl != KafkaSasl::None || self.user.is_some()
    }

    /// Keys that need each other, and what is wrong with them. `password` is what the key of the
    /// password's file is called.
    pub fn mistakes(&self, password: &str) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let mut needs = |broken: bool, key: &'static str, problem: &str| {
            if broken {
                wrong.push((key, problem.to_owned()));
            }
        };
        let named = [&self.ca, &self.cert, &self.key].iter().any(|it| it.is_some());
        let unused = "files for TLS are named, and it is not used: set tls = true";
        needs(named && !self.tls, "tls", unused);
        let alone = self.cert.is_some() != self.key.is_some();
        needs(alone, "tls_cert", "a certificate and its key are given together");
        let sasl = self.sasl != KafkaSasl::None;
        let who = [self.user.is_some(), self.password_file.is_some()];
        let nobody = format!("who we are: set user and {password}");
        needs(sasl && who != [true; 2], "sasl", &nobody);
        let unproved = "a user is named, and not how the password is proved: set sasl";
        needs(!sasl && who != [false; 2], "sasl", unproved);
        needs(
            self.sasl == KafkaSasl::Plain && !self.tls,
            "sasl",
            "\"plain\" says the password to whoever listens; set tls = true, or use \"scram-sha-512\"",
        );
        wrong
    }

    pub fn link(&self, brokers: &str) -> Link {
        let Access { secret, tls, user } = self.access();
        let sasl = user.zip(secret).map(|((mechanism, user), password_file)| Sasl {
            mechanism,
            user,
            password_file,
        });
        Link { brokers: brokers.to_owned(), tls, sasl }
    }

    pub fn access(&self) -> Access {
        let papers = self.cert.clone().zip(self.key.clone());
        let mechanism = match self.sasl {
            KafkaSasl::None => None,
            KafkaSasl::Plain => Some(Mechanism::Plain),
            KafkaSasl::ScramSha256 => Some(Mechanism::ScramSha256),
            KafkaSasl::ScramSha512 => Some(Mechanism::ScramSha512),
        };
        Access {
            secret: self.password_file.clone(),
            tls: self.tls.then(|| Tls { ca: self.ca.clone(), papers }),
            user: mechanism.zip(self.user.clone()),
        }
    }
}
