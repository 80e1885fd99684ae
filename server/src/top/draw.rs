//! The screen, drawn: 80 by 24 is enough, more room shows more. Nothing is told by colour alone.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, TableState};
use waitroom_sim::rehearsal::human::number;

use super::keys::{Asking, Desk};
use super::picture::{Picture, RoomPicture, pace, span};
use super::plain::Cells;
use super::screen::History;

/// All that is on the screen.
#[derive(Debug)]
pub struct Shown<'a> {
    pub picture: &'a Picture,
    pub desk: &'a Desk,
    pub history: &'a History,
    /// Why the last look failed; what is shown is older then.
    pub trouble: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Colours,
    /// Bold and reversed only.
    Plain,
}

impl Theme {
    /// `NO_COLOR`, whatever it is set to, means none.
    pub fn of_environment() -> Theme {
        let none = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        if none { Theme::Plain } else { Theme::Colours }
    }

    fn colour(self, colour: Color) -> Style {
        match self {
            Theme::Colours => Style::new().fg(colour),
            Theme::Plain => Style::new(),
        }
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn quiet(self) -> Style {
        self.colour(Color::DarkGray)
    }

    fn status(self, status: &str) -> Style {
        match status {
            "running" => self.colour(Color::Green),
            "paused" | "maintenance" | "draining" => self.colour(Color::Yellow),
            _ => Style::new(),
        }
    }
}

/// Rows of the part about the chosen room.
const DETAIL: u16 = 13;
/// From this width on a row has its last three columns.
const WIDE: u16 = 104;

pub fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>, theme: Theme) {
    let parts = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(DETAIL),
        Constraint::Length(1),
    ]);
    let [head, rooms, detail, foot] = parts.areas(frame.area());
    frame.render_widget(headline(shown, theme), head);
    table(frame, rooms, shown, theme);
    let chosen = shown.desk.chosen(&shown.picture.rooms);
    if let Some(room) = shown.picture.rooms.get(chosen) {
        one(frame, detail, room, shown, theme);
    }
    frame.render_widget(footline(shown, theme), foot);
}

fn headline<'a>(shown: &Shown<'a>, theme: Theme) -> Paragraph<'a> {
    let picture = shown.picture;
    let up = picture.up.map_or("?".to_owned(), |up| span(up.as_secs_f64()));
    let ready = match (picture.ready, shown.trouble) {
        (_, Some(_)) => Span::styled("NO ANSWER", theme.bad()),
        (true, None) => Span::styled("ready", theme.colour(Color::Green)),
        (false, None) => Span::styled("NOT READY", theme.bad()),
    };
    let title = format!("waitroom {}  ", picture.version);
    let first = Line::from(vec![
        Span::styled(title, Style::new().add_modifier(Modifier::BOLD)),
        ready,
        Span::raw(format!(
            "  up {up}  cpu {:.0} %  memory {:.0} MB",
            picture.cpu * 100.0,
            picture.memory_bytes / 1e6
        )),
    ]);
    let failing = picture.failures_per_s > 0.0;
    let second = Line::from(vec![
        Span::raw(format!(
            "connections {}  requests {}/s  ",
            number(picture.connections as u64),
            pace(picture.requests_per_s)
        )),
        Span::styled(
            format!("failures {}/s", pace(picture.failures_per_s)),
            if failing { theme.bad() } else { Style::new() },
        ),
    ]);
    Paragraph::new(vec![first, second])
}

fn table(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>, theme: Theme) {
    let wide = area.width >= WIDE;
    let mut widths = vec![
        Constraint::Min(12),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(13),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    let mut titles = vec!["ROOM", "STATUS", "WAITING", "INSIDE/MAX", "IN/S", "LIMIT", "WAIT"];
    if wide {
        widths.extend([Constraint::Length(8); 3]);
        titles.extend(["NO-SHOW", "LIVE", "DISK"]);
    }
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let row = |room: &RoomPicture| {
        let cells = Cells::of(room);
        let mark = if room.problems.is_empty() { "  " } else { "! " };
        let mut row = vec![
            Cell::from(format!("{mark}{}", room.name)),
            Cell::from(Span::styled(room.status.clone(), theme.status(&room.status))),
        ];
        let mut figures = vec![cells.waiting, cells.inside, cells.pace, cells.limit, cells.wait];
        if wide {
            figures.extend([cells.no_shows, cells.live, cells.disk]);
        }
        row.extend(figures.into_iter().map(right));
        Row::new(row)
    };
    let title = |(at, title): (usize, &str)| match at {
        0 => Cell::from(format!("  {title}")),
        1 => Cell::from(title.to_owned()),
        _ => right(title.to_owned()),
    };
    let titles = Row::new(titles.into_iter().enumerate().map(title)).style(theme.quiet());
    let rooms = &shown.picture.rooms;
    let table = Table::new(rooms.iter().map(row), widths)
        .header(titles)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let chosen = (!rooms.is_empty()).then(|| shown.desk.chosen(rooms));
    let mut state = TableState::default().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

fn one(frame: &mut Frame<'_>, area: Rect, room: &RoomPicture, shown: &Shown<'_>, theme: Theme) {
    let block = Block::new().borders(Borders::TOP).title(format!(" {} ", room.name));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(5),
        Constraint::Min(1),
    ]);
    let [title, sparkline, figures, problems] = parts.areas(inner);
    let limit = match room.limit_per_s {
        Some(limit) => format!("of {} allowed", pace(limit)),
        None => "(only operators admit)".to_owned(),
    };
    let said = format!("admitted a second: {} {limit}", pace(room.admitted_per_s));
    frame.render_widget(Paragraph::new(said), title);
    paces(frame, sparkline, room, shown, theme);
    frame.render_widget(Paragraph::new(facts(room)), figures);
    frame.render_widget(Paragraph::new(what_is_wrong(room, theme)), problems);
}

fn paces(frame: &mut Frame<'_>, area: Rect, room: &RoomPicture, shown: &Shown<'_>, theme: Theme) {
    let empty = Default::default();
    let all = shown.history.get(&room.name).unwrap_or(&empty);
    let newest = all.len().saturating_sub(usize::from(area.width));
    let drawn: Vec<u64> = all.iter().skip(newest).copied().collect();
    // The limit is the top, so that half the height is half the pace.
    let top = room.limit_per_s.map(|limit| (limit * 10.0).ceil() as u64);
    let top = drawn.iter().copied().chain(top).max().unwrap_or(1).max(1);
    let sparkline = Sparkline::default().data(drawn).max(top).style(theme.colour(Color::Cyan));
    frame.render_widget(sparkline, area);
}

fn facts(room: &RoomPicture) -> Vec<Line<'static>> {
    let whole = |value: f64| number(value as u64);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let waited = room
        .waited_s
        .map(|(half, most)| format!("half up to {}, nine of ten up to {}", span(half), span(most)));
    let held = room
        .coverage()
        .map(|share| format!("{:.0} % of {} held", share * 100.0, whole(room.estimates_told)));
    let disk = room.append_s.map(|(half, slow)| format!("{}, 1 in 100 {}", span(half), span(slow)));
    let no_shows =
        room.no_show_share().map_or(String::new(), |share| format!(" ({:.1} %)", share * 100.0));
    vec![
        Line::from(format!(
            "in line   {}  joined {} (+{}/s)  left {}  expired {}",
            whole(room.waiting),
            whole(room.joined),
            pace(room.joined_per_s),
            whole(room.left),
            whole(room.expired)
        )),
        Line::from(format!(
            "inside    {}  unclaimed {}  admitted {}  completed {}  no-shows {}{no_shows}",
            whole(room.active),
            whole(room.admitted),
            whole(room.admissions),
            whole(room.completed),
            whole(room.no_shows)
        )),
        Line::from(format!("waited    {}", or_dash(waited))),
        Line::from(format!(
            "will wait {}  estimates: {}",
            or_dash(room.likely_wait_s.map(span)),
            or_dash(held)
        )),
        Line::from(format!(
            "writer    queue {}  disk {}  batch {}  live channels {}",
            whole(room.queue),
            or_dash(disk),
            or_dash(room.batch.map(|batch| format!("{batch:.1}"))),
            whole(room.live)
        )),
    ]
}

fn what_is_wrong(room: &RoomPicture, theme: Theme) -> Vec<Line<'static>> {
    if room.problems.is_empty() {
        return vec![Line::styled("nothing is wrong", theme.quiet())];
    }
    let line = |problem: &String| Line::styled(format!("! {}", visible(problem)), theme.bad());
    room.problems.iter().map(line).collect()
}

fn footline(shown: &Shown<'_>, theme: Theme) -> Paragraph<'static> {
    let strong = Style::new().add_modifier(Modifier::REVERSED);
    let line = match (&shown.desk.asking, &shown.desk.notice, shown.trouble) {
        (Some(Asking::Pause { room, reason }), _, _) => Line::styled(
            format!("Pause {room} (Enter, or Esc)? Visitors read: {}_", end_of(reason)),
            strong,
        ),
        (Some(Asking::Resume { room }), _, _) => {
            Line::styled(format!("Resume {room}? y or n"), strong)
        }
        // A server that is gone matters more than what was done before.
        (None, _, Some(trouble)) => {
            Line::styled(format!("what is shown is old: {}", visible(trouble)), theme.bad())
        }
        (None, Some(notice), None) => Line::styled(visible(notice), strong),
        (None, None, None) => {
            Line::styled("up, down: room   p: pause   r: resume   q: quit", theme.quiet())
        }
    };
    Paragraph::new(line)
}

/// The part of a long reason that is being typed.
fn end_of(reason: &str) -> String {
    const SHOWN: usize = 32;
    let chars: Vec<char> = reason.chars().collect();
    if chars.len() <= SHOWN {
        return reason.to_owned();
    }
    let end: String = chars[chars.len() - SHOWN..].iter().collect();
    format!("…{end}")
}

/// Reasons are written by people; their texts must not steer the terminal.
fn visible(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::picture::tests::looks;

    fn drawn(width: u16, height: u16, desk: &Desk, theme: Theme) -> (String, bool) {
        let (first, second) = looks();
        let picture = Picture::between(&first, &second);
        let paces = (0..70).map(|at| at * 100 / 69).collect();
        let history = History::from([("spring-sale".to_owned(), paces)]);
        let shown = Shown { picture: &picture, desk, history: &history, trouble: None };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
        terminal.draw(|frame| draw(frame, &shown, theme)).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let coloured = buffer.content().iter().any(|cell| cell.fg != Color::Reset);
        let lines = (0..height).map(|y| {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        });
        (lines.collect::<Vec<_>>().join("\n"), coloured)
    }

    #[test]
    fn eighty_by_twenty_four_shows_all_that_matters() {
        let (screen, _) = drawn(80, 24, &Desk::default(), Theme::Plain);
        let expected = include_str!("../../tests/observe/top_80x24.txt");
        assert_eq!(screen.trim_end(), expected.trim_end(), "drawn:\n{screen}");
    }

    #[test]
    fn no_color_means_none() {
        assert!(drawn(80, 24, &Desk::default(), Theme::Colours).1);
        assert!(!drawn(80, 24, &Desk::default(), Theme::Plain).1);
    }

    #[test]
    fn a_question_is_asked_before_anything_happens() {
        let pause = Asking::Pause { room: "vip".into(), reason: "back soo".into() };
        let desk = Desk { asking: Some(pause), room: Some("vip".into()), notice: None };
        let (screen, _) = drawn(80, 24, &desk, Theme::Plain);
        assert!(screen.contains("Pause vip (Enter, or Esc)? Visitors read: back soo_"), "{screen}");
        assert!(screen.contains("! the room has lost its store"), "{screen}");
        assert!(screen.contains("! paused: Payment is down, back soon"), "{screen}");
    }

    #[test]
    fn any_size_is_drawn_without_harm() {
        for (width, height) in [(1, 1), (10, 3), (20, 8), (79, 23), (120, 40), (300, 100)] {
            drawn(width, height, &Desk::default(), Theme::Colours);
        }
    }
}
