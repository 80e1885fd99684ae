//! Instances that share a Redis.

use crate::cutter::Cutter;
use crate::instance::{Instance, soon};
use crate::servers::{DURABLE, Server};

/// Any will do, as long as all have the same.
const MASTER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

pub struct House {
    pub instances: Vec<Instance>,
    pub redis: Server,
    /// The way of each instance to Redis, where it can be cut.
    pub ways: Vec<Cutter>,
    more: Vec<(String, String)>,
}

impl House {
    pub fn of(count: usize) -> House {
        House::with(count, &[])
    }

    /// With these variables set besides.
    pub fn with(count: usize, more: &[(&str, &str)]) -> House {
        let mut house = House::empty(more);
        for _ in 0..count {
            house.add();
        }
        house.settled(count);
        house
    }

    /// Each of them has a way to Redis of its own, that can be cut.
    pub fn behind_cutters(count: usize) -> House {
        let mut house = House::empty(&[]);
        for _ in 0..count {
            let way = Cutter::to(house.redis.port);
            house.instances.push(house.start_by(&way.url()));
            house.ways.push(way);
        }
        house.settled(count);
        house
    }

    fn empty(more: &[(&str, &str)]) -> House {
        let more = more.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let (instances, ways) = (Vec::new(), Vec::new());
        House { instances, ways, redis: Server::redis(&DURABLE), more: more.collect() }
    }

    /// One more instance.
    pub fn add(&mut self) {
        self.instances.push(self.start());
    }

    pub fn start(&self) -> Instance {
        self.start_by(&self.redis.url())
    }

    fn start_by(&self, url: &str) -> Instance {
        let mut variables = vec![
            ("WAITROOM_STORE_KIND", "redis"),
            ("WAITROOM_STORE_DURABILITY", "redis-sync"),
            ("WAITROOM_REDIS_URLS", url),
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

    /// The same, and no room is about to change hands: each is where it should be.
    pub fn at_rest(&self, count: usize) {
        soon("every room is where it should be", || {
            self.settled(count);
            let shown = picture(&self.instances[0]);
            let rooms = shown["rooms"].as_array()?;
            rooms.iter().all(|room| room["owner"] == room["preferred"]).then_some(())
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
    of_room(instance, room, "owner")
}

/// Who should own it.
pub fn preferred(instance: &Instance, room: &str) -> Option<String> {
    of_room(instance, room, "preferred")
}

fn of_room(instance: &Instance, room: &str, what: &str) -> Option<String> {
    let picture = picture(instance);
    let rooms = picture["rooms"].as_array()?;
    let room = rooms.iter().find(|it| it["room"] == room)?;
    Some(room[what].as_str()?.to_owned())
}
