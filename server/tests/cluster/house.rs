//! Instances that share a Redis.

use crate::instance::{Instance, soon};
use crate::servers::{DURABLE, Server};

/// Any will do, as long as all have the same.
const MASTER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

pub struct House {
    pub instances: Vec<Instance>,
    pub redis: Server,
    more: Vec<(String, String)>,
}

impl House {
    pub fn of(count: usize) -> House {
        House::with(count, &[])
    }

    /// With these variables set besides.
    pub fn with(count: usize, more: &[(&str, &str)]) -> House {
        let more = more.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let (instances, redis) = (Vec::new(), Server::redis(&DURABLE));
        let mut house = House { instances, redis, more: more.collect() };
        for _ in 0..count {
            house.add();
        }
        house.settled(count);
        house
    }

    /// One more instance.
    pub fn add(&mut self) {
        self.instances.push(self.start());
    }

    pub fn start(&self) -> Instance {
        let url = self.redis.url();
        let mut variables = vec![
            ("WAITROOM_STORE_KIND", "redis"),
            ("WAITROOM_STORE_DURABILITY", "redis-sync"),
            ("WAITROOM_REDIS_URLS", url.as_str()),
            ("WAITROOM_REDIS_REPLICAS_REQUIRED", "0"),
            ("WAITROOM_MASTER_KEY", MASTER),
            ("WAITROOM_LIMITS_JOIN", "none"),
        ];
        variables.extend(self.more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Instance::asked(&["--cluster", "127.0.0.1:0"], &variables)
    }

    /// Waits until every instance sees that many, and the same owner of every room.
    pub fn settled(&self, count: usize) {
        soon("all see the same owners", || {
            let pictures: Vec<_> = self.instances.iter().map(picture).collect();
            let first = pictures.first()?;
            let same = pictures.iter().all(|picture| {
                picture["rooms"] == first["rooms"]
                    && picture["instances"].as_array().is_some_and(|it| it.len() == count)
            });
            let owned = first["rooms"].as_array()?.iter().all(|room| !room["owner"].is_null());
            (same && owned).then_some(())
        });
    }

    /// Which instance owns a room, as all of them say; none while they differ.
    pub fn owner(&self, room: &str) -> Option<usize> {
        let mut said = self.instances.iter().map(|instance| owner(instance, room));
        let first = said.next()??;
        said.all(|other| other.as_ref() == Some(&first)).then_some(())?;
        self.instances.iter().position(|instance| name(instance) == first)
    }

    pub fn owner_soon(&self, room: &str) -> usize {
        soon("a room has an owner", || self.owner(room))
    }
}

pub fn picture(instance: &Instance) -> serde_json::Value {
    instance.operate("GET", "/admin/v1/cluster", "").json()
}

/// Who an instance is among the others.
pub fn name(instance: &Instance) -> String {
    picture(instance)["instance"].as_str().expect("it has a name").to_owned()
}

/// Who owns a room, as this instance says.
pub fn owner(instance: &Instance, room: &str) -> Option<String> {
    let picture = picture(instance);
    let rooms = picture["rooms"].as_array()?;
    let room = rooms.iter().find(|it| it["room"] == room)?;
    Some(room["owner"].as_str()?.to_owned())
}
