//! The time that scripts are told: nothing, so that they ask the server, or a test's clock.

use waitroom_store::Seams;

use crate::options::Time;

#[derive(Debug, Clone)]
pub struct Now {
    pub time: Time,
    pub seams: Seams,
}

impl Now {
    pub fn text(&self) -> String {
        match self.time {
            Time::OfTheServer => String::new(),
            Time::Given => self.seams.clock.now_ms().to_string(),
        }
    }
}
