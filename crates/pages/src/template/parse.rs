//! Reads a template: one pass over the text, a stack of open tags, a list of mistakes.

use super::{NAMES, Node};
use crate::address;
use crate::theme::Mistake;

/// Longer templates belong on a page of the shop.
const BYTES_MAX: usize = 16 * 1024;
/// Sections and tags within each other. Deeper is no template but an attack on the stack.
const DEPTH_MAX: usize = 32;

const TAGS: [&str; 21] = [
    "p",
    "div",
    "span",
    "h2",
    "h3",
    "h4",
    "strong",
    "em",
    "b",
    "i",
    "small",
    "ul",
    "ol",
    "li",
    "a",
    "blockquote",
    "section",
    "figure",
    "figcaption",
    "abbr",
    "time",
];
const VOID_TAGS: [&str; 3] = ["br", "hr", "img"];
/// Classes that `page.css` has for templates.
const CLASSES: [&str; 4] = ["t-muted", "t-small", "t-center", "t-card"];

pub(super) fn nodes(text: &str) -> Result<Vec<Node>, Vec<Mistake>> {
    if text.len() > BYTES_MAX {
        let problem = format!("a template has at most {BYTES_MAX} bytes");
        return Err(vec![Mistake::new("line 1", problem)]);
    }
    let mut parser = Parser { text, at: 0, tags: Vec::new(), pages: 0, mistakes: Vec::new() };
    let nodes = parser.read(&mut Vec::new());
    if parser.pages != 1 {
        parser.wrong("{{> waiting}} stands exactly once: it is the page itself");
    }
    if parser.mistakes.is_empty() { Ok(nodes) } else { Err(parser.mistakes) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Open tags, and how many sections were open when each opened.
    tags: Vec<(&'static str, usize)>,
    pages: usize,
    mistakes: Vec<Mistake>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&mut self, problem: impl Into<String>) {
        let line = self.text[..self.at].bytes().filter(|&it| it == b'\n').count() + 1;
        self.mistakes.push(Mistake::new(format!("line {line}"), problem));
    }

    /// Reads until the end, or the end of the innermost of `sections`.
    fn read(&mut self, sections: &mut Vec<&'static str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        while !self.rest().is_empty() {
            let rest = self.rest();
            if let Some(after) = rest.strip_prefix("{{") {
                if self.mustache(after, sections, &mut nodes) {
                    return nodes;
                }
            } else if rest.starts_with('<') {
                let markup = self.tag(sections.len());
                nodes.push(Node::Markup(markup));
            } else {
                // The first letter is text whatever it is: a lone brace, for instance.
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let length = rest[first..].find(['<', '{']).map_or(rest.len(), |it| it + first);
                let text = &rest[..length];
                nodes.push(Node::Markup(text.replace('>', "&gt;")));
                self.at += text.len();
            }
        }
        if let Some(name) = sections.last() {
            self.wrong(format!("{{{{#{name}}}}} is not closed"));
        } else if let Some((tag, _)) = self.tags.last() {
            self.wrong(format!("<{tag}> is not closed"));
        }
        nodes
    }

    /// One `{{…}}`; true when it ends the section that is being read.
    fn mustache(
        &mut self,
        after: &'a str,
        sections: &mut Vec<&'static str>,
        nodes: &mut Vec<Node>,
    ) -> bool {
        let (inside, close) = match after.strip_prefix('{') {
            Some(inside) => (inside, "}}}"),
            None => (after, "}}"),
        };
        let Some((inside, _)) = inside.split_once(close) else {
            self.wrong("{{ without its }}");
            self.at = self.text.len();
            return false;
        };
        let length = 2 * close.len() + inside.len();
        let word = inside.trim();
        let (sign, name) = match word.chars().next() {
            Some(sign @ ('#' | '^' | '/' | '>' | '!' | '&')) => (sign, word[1..].trim()),
            _ => (' ', word),
        };
        let known = NAMES.iter().find(|it| **it == name).copied();
        match (sign, known) {
            ('!', _) => {}
            ('>', _) if name == "waiting" => {
                if !sections.is_empty() || !self.tags.is_empty() {
                    self.wrong("{{> waiting}} stands inside no tag and no section");
                }
                self.pages += 1;
                nodes.push(Node::Waiting);
            }
            ('>', _) => self.wrong("there is no part but {{> waiting}}"),
            (_, None) => self.wrong(format!("{name:?} is no variable that a page knows")),
            ('#' | '^', Some(name)) => {
                self.at += length;
                if sections.len() >= DEPTH_MAX {
                    self.wrong("too many sections within each other");
                    self.at = self.text.len();
                    return false;
                }
                sections.push(name);
                let inner = self.read(sections);
                sections.pop();
                nodes.push(Node::Section { name, unless: sign == '^', inner });
                return false;
            }
            ('/', Some(name)) => {
                let open_tag = self.tags.last().filter(|(_, depth)| *depth >= sections.len());
                if sections.last() != Some(&name) {
                    self.wrong(format!("{{{{/{name}}}}} closes nothing"));
                } else if let Some((tag, _)) = open_tag.copied() {
                    self.wrong(format!("<{tag}> is not closed in its section"));
                    self.tags.retain(|(_, depth)| *depth < sections.len());
                    self.at += length;
                    return true;
                } else {
                    self.at += length;
                    return true;
                }
            }
            (_, Some(name)) => nodes.push(Node::Variable(name)),
        }
        self.at += length;
        false
    }

    /// One tag, checked and written anew from what was understood of it.
    fn tag(&mut self, sections: usize) -> String {
        let rest = self.rest();
        if let Some(comment) = rest.strip_prefix("<!--") {
            let length = comment.find("-->").map_or(rest.len(), |end| end + 7);
            self.at += length;
            return String::new();
        }
        let (closes, body) = match rest[1..].strip_prefix('/') {
            Some(body) => (true, body),
            None => (false, &rest[1..]),
        };
        let length = body.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(body.len());
        let name = body[..length].to_ascii_lowercase();
        let known = TAGS.iter().chain(&VOID_TAGS).find(|it| **it == name).copied();
        let Some(tag) = known else {
            self.wrong(if name.is_empty() {
                "write &lt; for the sign itself".to_owned()
            } else {
                format!("<{name}> is not one of the tags that a template may use")
            });
            self.at += 1;
            return String::new();
        };
        self.at += rest.len() - body.len() + length;
        if closes { self.closing(tag, sections) } else { self.opening(tag, sections) }
    }

    fn closing(&mut self, tag: &'static str, sections: usize) -> String {
        match self.rest().trim_start().strip_prefix('>') {
            Some(after) => self.at = self.text.len() - after.len(),
            None => self.wrong(format!("</{tag} without its >")),
        }
        match self.tags.last() {
            Some((open, depth)) if *open == tag && *depth == sections => {
                self.tags.pop();
                format!("</{tag}>")
            }
            _ => {
                self.wrong(format!("</{tag}> closes nothing"));
                String::new()
            }
        }
    }

    fn opening(&mut self, tag: &'static str, sections: usize) -> String {
        let mut written = format!("<{tag}");
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            let rest = self.rest();
            if let Some(after) = rest.strip_prefix("/>").or_else(|| rest.strip_prefix('>')) {
                self.at = self.text.len() - after.len();
                break;
            }
            match self.attribute(tag) {
                Some(attribute) => written.push_str(&attribute),
                None => {
                    // Nothing sensible follows; go on behind the tag so that one mistake is one.
                    self.at += self.rest().find('>').map_or(self.rest().len(), |end| end + 1);
                    break;
                }
            }
        }
        if !VOID_TAGS.contains(&tag) {
            if self.tags.len() >= DEPTH_MAX {
                self.wrong("too many tags within each other");
                self.at = self.text.len();
            }
            self.tags.push((tag, sections));
        }
        written + ">"
    }

    /// ` name="value"`, or none after a mistake.
    fn attribute(&mut self, tag: &str) -> Option<String> {
        let rest = self.rest();
        let length = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        let name = rest[..length.unwrap_or(rest.len())].to_ascii_lowercase();
        let value = rest[name.len()..].trim_start().strip_prefix('=').map(str::trim_start);
        let quoted = value.and_then(|it| {
            let quote = it.chars().next().filter(|it| "\"'".contains(*it))?;
            let end = it[1..].find(quote)?;
            Some((&it[1..=end], &it[end + 2..]))
        });
        let Some((value, after)) = quoted.filter(|_| !name.is_empty()) else {
            self.wrong(format!("attributes of <{tag}> are written name=\"value\""));
            return None;
        };
        let problem = match (name.as_str(), tag) {
            _ if value.contains("{{") => Some("no variables inside of tags".to_owned()),
            ("class", _) => value
                .split_whitespace()
                .find(|it| !CLASSES.contains(it))
                .map(|it| format!("no class {it:?}; there are {}", CLASSES.join(", "))),
            ("href", "a") => address::link(value).err().map(str::to_owned),
            // Pictures of other hosts are for the theme, which names them in the policy.
            ("src", "img") => match address::picture(value) {
                Ok(None) => None,
                Ok(Some(_)) => Some("pictures of a template are paths on this host".to_owned()),
                Err(problem) => Some(problem.to_owned()),
            },
            ("width" | "height", "img") => (value.is_empty()
                || value.len() > 4
                || !value.bytes().all(|it| it.is_ascii_digit()))
            .then(|| "a size is a number of pixels".to_owned()),
            ("alt", "img") | ("title" | "lang", _) => None,
            ("dir", _) if matches!(value, "ltr" | "rtl" | "auto") => None,
            _ => Some("a template cannot set this".to_owned()),
        };
        if let Some(problem) = problem {
            self.wrong(format!("{name} of <{tag}>: {problem}"));
        }
        self.at = self.text.len() - after.len();
        // Entities were written by the template's author and stay what they are; what would end
        // the attribute does not.
        let value = value.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
        Some(format!(" {name}=\"{value}\""))
    }
}
