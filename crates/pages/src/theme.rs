//! A room's looks: colours, a logo, texts of its own. JSON in, a style and a picture out.
//!
//! Lives here: what may be changed, and the check that it can still be read. Colours come in as
//! `#rrggbb` and go out as that, so no style but ours reaches the page; ink, rules and the colour
//! of text on buttons are worked out from the two that a room chooses.
//! Stays out: layout. A theme moves and hides nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::address;
use crate::colour::{BLACK, Colour, WHITE};
use crate::escape::html;
use crate::words::{self, Text, Words};

/// What is wrong with a theme or a template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// A field of a theme, or `line 3` of a template.
    pub place: String,
    pub problem: String,
}

impl Mistake {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Mistake {
        Mistake { place: place.into(), problem: problem.into() }
    }
}

/// A theme that was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    style: String,
    logo: Option<Logo>,
    texts: BTreeMap<String, BTreeMap<String, Text>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Logo {
    url: String,
    alt: String,
    origin: Option<String>,
}

/// The document as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    accent: Option<String>,
    accent_dark: Option<String>,
    paper: Option<String>,
    paper_dark: Option<String>,
    logo: Option<LogoDocument>,
    /// By language tag, or `*` for all of them.
    texts: BTreeMap<String, BTreeMap<String, Text>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogoDocument {
    url: String,
    #[serde(default)]
    alt: String,
}

/// Text must read with this ratio (WCAG 2.2, 1.4.3), and running text with more (1.4.6).
const READS: f64 = 4.5;
const READS_WELL: f64 = 7.0;
/// A text longer than this is an essay, and belongs into a template.
const TEXT_CHARS_MAX: usize = 400;

/// The colours of one scheme that a theme does not choose; the same as in `page.css`.
struct Scheme {
    suffix: &'static str,
    paper: Colour,
    accent: Colour,
    ink: Colour,
    warn: Colour,
    /// Where colours go to be read better.
    end: Colour,
    /// Where the ticket goes from the paper it lies on.
    card: (Colour, u32),
}

const fn colour(red: u8, green: u8, blue: u8) -> Colour {
    Colour { red, green, blue }
}

const LIGHT: Scheme = Scheme {
    suffix: "",
    paper: colour(0xf6, 0xf3, 0xec),
    accent: colour(0x1f, 0x5c, 0x4d),
    ink: colour(0x1c, 0x20, 0x24),
    warn: colour(0x8a, 0x3b, 0x12),
    end: BLACK,
    card: (WHITE, 70),
};

const DARK: Scheme = Scheme {
    suffix: "_dark",
    paper: colour(0x14, 0x17, 0x1a),
    accent: colour(0x7f, 0xd1, 0xb5),
    ink: colour(0xf1, 0xef, 0xe9),
    warn: colour(0xff, 0xb9, 0x8a),
    end: WHITE,
    card: (WHITE, 4),
};

impl Theme {
    /// Reads and checks a theme; all mistakes at once.
    pub fn read(json: &str) -> Result<Theme, Vec<Mistake>> {
        let document: Document = serde_json::from_str(json)
            .map_err(|error| vec![Mistake::new("theme", error.to_string())])?;
        let mut mistakes = Vec::new();
        let mut parse = |field: &str, text: &Option<String>| {
            let text = text.as_deref()?;
            let found = Colour::parse(text);
            if found.is_none() {
                let problem = format!("{text:?} is no colour; write #rrggbb");
                mistakes.push(Mistake::new(field, problem));
            }
            found
        };
        let accent = parse("accent", &document.accent);
        let accent_dark = parse("accent_dark", &document.accent_dark);
        let paper = parse("paper", &document.paper);
        let paper_dark = parse("paper_dark", &document.paper_dark);
        let light = LIGHT.variables(paper, accent, &mut mistakes);
        // A dark scheme that nobody chose takes the accent over, made light enough.
        let derived = accent.filter(|_| accent_dark.is_none()).and_then(|accent| {
            let ground = paper_dark.unwrap_or(DARK.paper);
            accent.until_readable(WHITE, &[ground, DARK.card_on(ground)], READS)
        });
        let dark = DARK.variables(paper_dark, accent_dark.or(derived), &mut mistakes);
        let logo = document.logo.and_then(|logo| match address::picture(&logo.url) {
            Ok(origin) => Some(Logo { url: logo.url, alt: logo.alt, origin }),
            Err(problem) => {
                mistakes.push(Mistake::new("logo.url", problem));
                None
            }
        });
        check_texts(&document.texts, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut style = String::new();
        if !light.is_empty() {
            style = format!(":root{{{light}}}");
        }
        if !light.is_empty() || !dark.is_empty() {
            // Without colours of its own the dark scheme must not inherit the light ones.
            let dark = if dark.is_empty() { DARK.all(DARK.paper, DARK.accent) } else { dark };
            style += &format!("@media(prefers-color-scheme:dark){{:root{{{dark}}}}}");
        }
        Ok(Theme { style, logo, texts: document.texts })
    }

    pub(crate) fn css(&self) -> String {
        self.style.clone()
    }

    pub(crate) fn logo_html(&self) -> String {
        let picture =
            |logo: &Logo| format!("<img src=\"{}\" alt=\"{}\">", html(&logo.url), html(&logo.alt));
        self.logo.as_ref().map(picture).unwrap_or_default()
    }

    /// With a space before it, for the policy.
    pub(crate) fn logo_origin(&self) -> Option<String> {
        Some(format!(" {}", self.logo.as_ref()?.origin.as_ref()?))
    }

    /// The language's words with the room's own over them.
    pub(crate) fn lay_over(&self, words: &'static Words) -> Cow<'static, Words> {
        let own = |tag: &str| self.texts.get(tag).filter(|it| !it.is_empty());
        if own("*").is_none() && own(words.tag).is_none() {
            return Cow::Borrowed(words);
        }
        let mut words = words.clone();
        let tag = words.tag;
        for texts in [own("*"), own(tag)].into_iter().flatten() {
            words.page.extend(texts.iter().map(|(key, text)| (key.clone(), text.clone())));
        }
        Cow::Owned(words)
    }
}

impl Scheme {
    fn card_on(&self, paper: Colour) -> Colour {
        paper.towards(self.card.0, self.card.1)
    }

    fn variables(
        &self,
        paper: Option<Colour>,
        accent: Option<Colour>,
        mistakes: &mut Vec<Mistake>,
    ) -> String {
        if paper.is_none() && accent.is_none() {
            return String::new();
        }
        let (ground, own) = (paper.unwrap_or(self.paper), accent.unwrap_or(self.accent));
        let card = self.card_on(ground);
        let grounds = [ground, card];
        let worst = |it: Colour| it.contrast(ground).min(it.contrast(card));
        if worst(self.ink) < READS_WELL || worst(self.warn) < READS {
            let field = format!("paper{}", self.suffix);
            let side = if self.end == BLACK { "light" } else { "dark" };
            let problem = format!("{} is not {side} enough to read text on it", ground.css());
            mistakes.push(Mistake::new(field, problem));
        } else if worst(own) < READS {
            let field = format!("accent{}", self.suffix);
            let better = own.until_readable(self.end, &grounds, READS).unwrap_or(self.end);
            let problem = format!(
                "{} reads with a contrast of {:.1} on {}; {READS} is needed, which {} has",
                own.css(),
                worst(own),
                ground.css(),
                better.css()
            );
            mistakes.push(Mistake::new(field, problem));
        }
        self.all(ground, own)
    }

    fn all(&self, paper: Colour, accent: Colour) -> String {
        let card = self.card_on(paper);
        let soft = paper.until_readable(self.ink, &[paper, card], 5.0).unwrap_or(self.ink);
        let rule = paper.towards(self.ink, 16);
        let dark = colour(0x0d, 0x12, 0x12);
        let on = if WHITE.contrast(accent) >= dark.contrast(accent) { WHITE } else { dark };
        [
            ("paper", paper),
            ("card", card),
            ("ink", self.ink),
            ("soft", soft),
            ("rule", rule),
            ("accent", accent),
            ("on-accent", on),
        ]
        .map(|(name, colour)| format!("--{name}:{};", colour.css()))
        .concat()
    }
}

fn check_texts(texts: &BTreeMap<String, BTreeMap<String, Text>>, mistakes: &mut Vec<Mistake>) {
    let english = &words::all()[0];
    for (tag, texts) in texts {
        if tag != "*" && words::of(tag).is_none() {
            mistakes.push(Mistake::new(format!("texts.{tag}"), "no page speaks this language"));
        }
        for (key, text) in texts {
            let mut wrong = |problem: String| {
                mistakes.push(Mistake::new(format!("texts.{tag}.{key}"), problem));
            };
            match english.page.get(key) {
                None => wrong("there is no such text".to_owned()),
                Some(model) => {
                    if let Some(problem) = unlike(model, text) {
                        wrong(problem);
                    }
                }
            }
        }
    }
}

/// How a text of a room's own differs from ours in what the page relies on.
fn unlike(model: &Text, text: &Text) -> Option<String> {
    let (model, forms): (&String, Vec<&String>) = match (model, text) {
        (Text::Plain(model), Text::Plain(text)) => (model, vec![text]),
        (Text::Counted(model), Text::Counted(forms)) => {
            if !forms.contains_key("other") {
                return Some("needs a form \"other\"".to_owned());
            }
            (&model["other"], forms.values().collect())
        }
        (Text::Plain(_), Text::Counted(_)) => return Some("is one text, without forms".to_owned()),
        (Text::Counted(_), Text::Plain(_)) => {
            return Some("needs plural forms: {\"one\": …, \"other\": …}".to_owned());
        }
    };
    for form in forms {
        if form.trim().is_empty() || form.chars().count() > TEXT_CHARS_MAX {
            return Some(format!("has 1 to {TEXT_CHARS_MAX} letters"));
        }
        if let Some(hole) = holes(form).into_iter().find(|hole| !holes(model).contains(hole)) {
            return Some(format!("{{{hole}}} is not filled here"));
        }
    }
    None
}

/// The names in `{…}`.
pub(crate) fn holes(text: &str) -> Vec<&str> {
    let after = text.split('{').skip(1);
    let mut names: Vec<&str> = after.filter_map(|it| Some(it.split_once('}')?.0)).collect();
    names.sort_unstable();
    names.dedup();
    names
}
