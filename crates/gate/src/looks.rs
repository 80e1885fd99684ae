//! A room's theme and template, read once for as long as they stay the same.
//!
//! They were checked when they were set. Should a newer release refuse one that an older one took,
//! the page is shown without it: a visitor must know where they stand, whatever it looks like.

use std::sync::{Arc, Mutex, PoisonError};

use waitroom_core::Settings;
use waitroom_pages::{Template, Theme};

#[derive(Debug, Default)]
pub struct Looks(Mutex<Arc<Look>>);

/// How the page of a room looks.
#[derive(Debug, Default)]
pub struct Look {
    /// As they are written in the settings.
    written: (String, String),
    pub theme: Option<Theme>,
    pub template: Option<Template>,
}

impl Looks {
    pub fn of(&self, settings: Option<&Settings>) -> Arc<Look> {
        let (theme, template) = settings.map_or(("", ""), |it| (&*it.theme, &*it.template));
        let mut look = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (look.written.0.as_str(), look.written.1.as_str()) != (theme, template) {
            *look = Arc::new(Look {
                written: (theme.to_owned(), template.to_owned()),
                theme: Some(theme).filter(|it| !it.is_empty()).and_then(|it| Theme::read(it).ok()),
                template: Some(template)
                    .filter(|it| !it.is_empty())
                    .and_then(|it| Template::read(it).ok()),
            });
        }
        look.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(theme: &str, template: &str) -> Settings {
        Settings { theme: theme.into(), template: template.into(), ..Settings::default() }
    }

    #[test]
    fn a_look_is_read_again_only_when_it_changed() {
        let looks = Looks::default();
        let one = settings(r##"{"accent":"#5b2a86"}"##, "");
        let first = looks.of(Some(&one));
        assert!(first.theme.is_some() && first.template.is_none());
        assert!(Arc::ptr_eq(&first, &looks.of(Some(&one))));
        let both = looks.of(Some(&settings(r##"{"accent":"#5b2a86"}"##, "{{> waiting}}")));
        assert!(both.theme.is_some() && both.template.is_some());
        assert!(looks.of(Some(&Settings::default())).theme.is_none());
    }

    #[test]
    fn what_cannot_be_read_any_more_is_left_out() {
        let look = Looks::default().of(Some(&settings("{\"accent\":\"red\"}", "<script>")));
        assert!(look.theme.is_none() && look.template.is_none());
    }
}
