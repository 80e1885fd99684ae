//! One connection to one server, which knows our scripts.
//!
//! Lives here: connecting, sending a pipeline, and reading from an error whether it was done.
//! Stays out: which server to ask (`place.rs`), and what to do after an error.

use std::sync::Arc;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, ServerError, Value,
    aio::MultiplexedConnection,
};

use crate::{options::Options, script::SOURCES, trouble::Trouble, value};

/// A server we may connect to. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Server {
    info: Arc<ConnectionInfo>,
    /// Host and port, to tell servers apart.
    pub name: Arc<str>,
}

impl Server {
    pub fn new(info: ConnectionInfo) -> Server {
        let name = info.addr().to_string().into();
        Server { info: Arc::new(info), name }
    }

    /// Another server of the same kind: same user, password, database and encryption.
    pub fn at(&self, host: &str, port: u16) -> Server {
        use redis::ConnectionAddr::{Tcp, TcpTls};
        let addr = match self.info.addr() {
            TcpTls { insecure, tls_params, .. } => TcpTls {
                host: host.into(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => Tcp(host.into(), port),
        };
        Server::new((*self.info).clone().set_addr(addr))
    }

    /// The host that was connected to, for servers that do not know their own.
    pub fn host(&self) -> &str {
        match self.info.addr() {
            redis::ConnectionAddr::Tcp(host, _) => host,
            redis::ConnectionAddr::TcpTls { host, .. } => host,
            _ => "",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Wire {
    connection: MultiplexedConnection,
    hashes: Arc<[String]>,
}

impl Wire {
    /// Connects, and makes our scripts known. Nothing of ours was sent if that fails.
    pub async fn open(server: &Server, options: &Options) -> Result<Wire, Trouble> {
        let mut wire = Wire::plain(server, options).await?;
        wire.teach().await?;
        Ok(wire)
    }

    /// Connects to a server that need not know scripts.
    pub async fn plain(server: &Server, options: &Options) -> Result<Wire, Trouble> {
        let away = |why: String| Trouble::Away(format!("{}: {why}", server.name));
        let client = Client::open((*server.info).clone()).map_err(|it| away(it.to_string()))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect_timeout))
            .set_response_timeout(Some(options.answer_timeout + options.replicas_timeout));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        // The crate's own limit is for the socket; a server that accepts and says nothing is away, too.
        let connected = tokio::time::timeout(options.connect_timeout * 2, connecting).await;
        let connected = connected.map_err(|_| away("no answer while connecting".into()))?;
        let connection = connected.map_err(|it| away(it.to_string()))?;
        Ok(Wire { connection, hashes: Arc::new([]) })
    }

    /// Makes our scripts known to the server, which forgets them when it restarts.
    pub async fn teach(&mut self) -> Result<(), Trouble> {
        let load = |source: &&str| redis::cmd("SCRIPT").arg("LOAD").arg(*source).to_owned();
        let answers = self.send(SOURCES.iter().map(load).collect()).await;
        let answers = answers.map_err(|why| Trouble::Away(format!("scripts: {}", why.0)))?;
        let mut hashes = Vec::with_capacity(SOURCES.len());
        for answer in answers {
            match answer {
                Value::ServerError(error) => {
                    return Err(Trouble::Away(format!("scripts: {}", words(&error))));
                }
                answer => {
                    let hash = value::bytes(answer)?;
                    hashes.push(String::from_utf8_lossy(&hash).into_owned());
                }
            }
        }
        self.hashes = hashes.into();
        Ok(())
    }

    pub fn hashes(&self) -> &[String] {
        &self.hashes
    }

    /// Sends commands in one piece. An error means that any of them may have been done, and that
    /// this connection is of no more use.
    pub async fn send(&mut self, commands: Vec<Cmd>) -> Result<Vec<Value>, Broken> {
        let count = commands.len();
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        let sent = self.connection.send_packed_commands(&pipeline, 0, count).await;
        let answers = sent.map_err(|error| Broken(error.to_string()))?;
        if answers.len() != count {
            return Err(Broken(format!("{} answers to {count} requests", answers.len())));
        }
        Ok(answers)
    }

    pub async fn one(&mut self, command: Cmd) -> Result<Value, Trouble> {
        let sent = self.send(vec![command]).await;
        match sent.map_err(|broken| Trouble::Unknown(broken.0))?.pop() {
            Some(Value::ServerError(error)) => Err(Trouble::Refused(words(&error))),
            Some(value) => Ok(value),
            None => Err(Trouble::Unknown("no answer".into())),
        }
    }
}

/// A connection ended before all answers were there.
#[derive(Debug, Clone)]
pub struct Broken(pub String);

/// What a server's refusal asks us to do. In all these cases nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Another server has the slot for good.
    Moved(String, u16),
    /// Another server has it for this request.
    Ask(String, u16),
    /// Somebody has it soon: a failover, a start or a move is under way.
    Later,
    /// The server forgot our scripts.
    Teach,
}

impl Turn {
    pub fn of(error: &ServerError) -> Option<Turn> {
        let place = || {
            let place = error.details()?.split_ascii_whitespace().nth(1)?;
            let (host, port) = place.rsplit_once(':')?;
            Some((host.to_owned(), port.parse().ok()?))
        };
        match error.code() {
            "MOVED" => place().map(|(host, port)| Turn::Moved(host, port)),
            "ASK" => place().map(|(host, port)| Turn::Ask(host, port)),
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => Some(Turn::Later),
            "NOSCRIPT" => Some(Turn::Teach),
            _ => None,
        }
    }
}

pub fn words(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}
