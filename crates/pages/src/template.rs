//! A room's own words and pictures around the waiting page: Mustache-like text, checked once.
//!
//! `{{> waiting}}` is where the page itself goes; it stands exactly once, inside no tag and no
//! section, so nothing can hide it. `{{name}}` is a variable, `{{#name}}…{{/name}}` is shown while
//! it is true, `{{^name}}…{{/name}}` while it is not. `{{{name}}}` is the same as `{{name}}`: no
//! variable is ever taken as HTML. Names are those of the widest-spread hosted waiting room, so
//! that its templates need few changes, and a few of our own.
//!
//! Markup is a short list of tags and attributes; anything else is a mistake with its line, not
//! silently dropped. Tags must close, so a template cannot swallow what follows it.
//! To add a variable: a row in [`NAMES`], its value in [`Variables::of`] and in `variables` of
//! `pages/page.js` if it changes while one waits.

mod parse;
mod variables;

pub(crate) use variables::Variables;

use crate::escape::html;
use crate::theme::Mistake;

/// A template that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    before: Vec<Node>,
    after: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// Checked markup and text, as it stands on the page.
    Markup(String),
    Variable(&'static str),
    Section {
        name: &'static str,
        unless: bool,
        inner: Vec<Node>,
    },
    /// `{{> waiting}}`
    Waiting,
}

/// What a template may ask for.
const NAMES: &[&str] = &[
    "waitTimeKnown",
    "waitTime",
    "waitTimeHours",
    "waitTimeHourMinutes",
    "waitTimeFormatted",
    "queueIsFull",
    "queueAll",
    "lastUpdated",
    "isFIFOQueue",
    "isRandomQueue",
    "isPassthroughQueue",
    "isRejectQueue",
    "isEventActive",
    "isEventPrequeueing",
    "shuffleAtEventStart",
    "refreshIntervalSeconds",
    "position",
    "ahead",
    "title",
    "room",
    "message",
    "reason",
    "paused",
    "supportCode",
];

impl Template {
    /// Reads and checks a template; all mistakes at once.
    pub fn read(text: &str) -> Result<Template, Vec<Mistake>> {
        let mut nodes = parse::nodes(text)?;
        let at = nodes.iter().position(|node| *node == Node::Waiting);
        let at = at.expect("a template without its page does not get through the parser");
        let after = nodes.split_off(at + 1);
        nodes.pop();
        Ok(Template { before: nodes, after })
    }

    /// What stands before the page, and what behind it.
    pub(crate) fn render(&self, variables: &Variables) -> (String, String) {
        (wrapped(&self.before, variables), wrapped(&self.after, variables))
    }
}

fn wrapped(nodes: &[Node], variables: &Variables) -> String {
    let mut out = String::new();
    render(nodes, variables, &mut out);
    if out.trim().is_empty() { String::new() } else { format!("<div>{out}</div>\n") }
}

/// Both branches of a section are sent, one of them hidden: the script shows the other when
/// things change, without knowing the template.
fn render(nodes: &[Node], variables: &Variables, out: &mut String) {
    for node in nodes {
        match node {
            Node::Markup(text) => out.push_str(text),
            Node::Variable(name) => {
                let value = html(&variables.text(name));
                out.push_str(&format!("<span data-v=\"{name}\">{value}</span>"));
            }
            Node::Section { name, unless, inner } => {
                let attribute = if *unless { "data-unless" } else { "data-if" };
                let hidden = if variables.holds(name) == *unless { " hidden" } else { "" };
                out.push_str(&format!("<w-if {attribute}=\"{name}\"{hidden}>"));
                render(inner, variables, out);
                out.push_str("</w-if>");
            }
            Node::Waiting => unreachable!("it stands between the two parts"),
        }
    }
}
