//! Events read from the text of a log, one after the other.

use std::sync::Arc;

use memchr::memchr;

use super::attributes::{Attributes, QUERY_TIME};
use super::behind::{breaks_off, is_command, is_missing, is_plain, Junk, Known, Step};
use super::class::{Event, Who};
use super::ending::{Ending, Found};
use super::gather::Gather;
use super::header::{prelude, Head, Heads, Prelude};
use super::layout::{Layouts, NoLayout};
use super::names::{Names, INHERITED, NONE};
use super::number::IMPOSSIBLE;
use super::shape::{shape, NoShape};
use super::time::Stamp;

/// Of a statement so many bytes make its fingerprint.
const STATEMENT: usize = 1 << 20;
/// A statement of which so much is there goes on in pieces.
const IN_MEMORY: usize = 2 << 20;

/// What one event leaves to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carry {
    pub database: u32,
    pub stamp_us: Option<i64>,
    /// The text before is not known.
    pub unknown: bool,
    /// That mattered.
    pub guessed: bool,
}

/// What is known of an event before its statement.
#[derive(Debug, Clone, Copy)]
struct Context {
    who: Who,
    at_us: Option<i64>,
    /// Where the statement begins.
    began: usize,
}

/// A statement that is longer than what is retained of it.
#[derive(Debug)]
struct Long {
    context: Context,
    statement: Vec<u8>,
    ending: Ending,
}

/// Reads events, and remembers what the next one has in common with the last.
#[derive(Debug)]
pub(super) struct Reader {
    heads: Heads,
    layouts: Layouts,
    pub names: Names,
    pub attributes: Attributes,
    pub carry: Carry,
    junk: Junk,
    long: Option<Long>,
    seed: u64,
}

impl Reader {
    /// A reader at the start of a log.
    pub fn new(seed: u64) -> Self {
        Self {
            heads: Heads::default(),
            layouts: Layouts::default(),
            names: Names::default(),
            attributes: Attributes::default(),
            carry: Carry::default(),
            junk: Junk::default(),
            long: None,
            seed,
        }
    }

    /// Whether the next byte can be the first of an event.
    pub fn between(&self) -> bool {
        self.long.is_none() && !self.junk.within
    }

    /// The database that the next event inherits, if the text so far names one.
    pub fn database(&self) -> Option<Arc<str>> {
        (self.carry.database != INHERITED).then(|| self.names.text(self.carry.database))
    }

    /// Reads what `text` starts with; `last`: no more bytes follow it.
    #[inline]
    pub fn step(&mut self, text: &[u8], last: bool, gather: &mut Gather) -> Step {
        if self.long.is_some() {
            return self.go_on(text, last, gather);
        }
        match text.first() {
            Some(b'#') if !self.junk.within => self.event(text, last, gather),
            Some(_) => self.no_event(text, last, gather),
            None => Step::NotYet,
        }
    }

    #[cold]
    fn no_event(&mut self, text: &[u8], last: bool, gather: &mut Gather) -> Step {
        let step = self.junk.pass(text, last, &mut gather.oddities);
        if std::mem::take(&mut self.junk.banner) {
            self.carry.database = NONE;
        }
        step
    }

    #[inline]
    fn event(&mut self, text: &[u8], last: bool, gather: &mut Gather) -> Step {
        let Some(head) = self.heads.read(text, last, &mut self.names) else {
            return self.not_yet(text, gather);
        };
        let at = match self
            .layouts
            .read(text, head.end, last, &mut self.attributes)
        {
            Ok(at) if self.layouts.layout().place(QUERY_TIME).is_some() => at,
            Ok(_) | Err(NoLayout::Junk) => {
                gather.oddities.unknown_lines += 1;
                return self.junk.pass_line(text, &mut gather.oddities);
            }
            Err(NoLayout::NotYet) => return Step::NotYet,
        };
        let Some(prelude) = prelude(text, at, last) else {
            return Step::NotYet;
        };
        let context = self.settle(text, head, prelude);
        self.statement(text, last, context, gather)
    }

    /// Waits for more bytes, unless nothing that long makes sense.
    fn not_yet(&mut self, text: &[u8], gather: &mut Gather) -> Step {
        if text.len() > IN_MEMORY {
            self.junk.pass_line(text, &mut gather.oddities)
        } else {
            Step::NotYet
        }
    }

    /// Whose event this is and when: by its own lines, else by those before it.
    #[inline]
    fn settle(&mut self, text: &[u8], head: Head, prelude: Prelude) -> Context {
        if let Some(name) = prelude.database {
            self.carry.database = self.names.number(name);
        }
        let database = match self.layouts.schema() {
            Some((start, end)) => self.names.number(&text[start..end]),
            None => self.carry.database,
        };
        if let Some(Stamp::Exact(at_us) | Stamp::Local(at_us)) = head.stamp {
            self.carry.stamp_us = Some(at_us);
        }
        let at_us = match (head.stamp, prelude.began_us) {
            (Some(Stamp::Exact(at_us)), _) | (_, Some(at_us)) => Some(at_us),
            _ => {
                self.carry.guessed |= self.carry.unknown && self.carry.stamp_us.is_none();
                self.carry.stamp_us
            }
        };
        let who = Who {
            user: head.user,
            host: head.host,
            database,
        };
        Context {
            who,
            at_us,
            began: prelude.end,
        }
    }

    #[inline]
    fn statement(
        &mut self,
        text: &[u8],
        last: bool,
        context: Context,
        gather: &mut Gather,
    ) -> Step {
        let body = &text[context.began..];
        let start = &body[..body.len().min(STATEMENT + 4096)];
        let all = start.len() == body.len();
        let found = if is_plain(body) {
            shape(start, self.seed, last && all)
        } else {
            Err(NoShape::Odd)
        };
        match found {
            Err(NoShape::NotYet) if all && !last => Step::NotYet,
            Ok(shape) if shape.end <= STATEMENT => {
                self.gather(&body[..shape.end], Some(shape.hash), context, gather);
                Step::Done(context.began + shape.next)
            }
            _ => self.odd_statement(text, last, context, gather),
        }
    }

    #[cold]
    fn odd_statement(
        &mut self,
        text: &[u8],
        last: bool,
        context: Context,
        gather: &mut Gather,
    ) -> Step {
        let body = &text[context.began..];
        match is_missing(body, last) {
            Known::NotYet => return Step::NotYet,
            Known::Yes => {
                let cut = breaks_off(body);
                gather.oddities.cut_events += u64::from(cut);
                gather.oddities.headers_without_statement += u64::from(!cut);
                self.gather(b"", None, context, gather);
                return Step::Done(context.began);
            }
            Known::No => {}
        }
        if is_command(body) {
            return self.command(text, last, context, gather);
        }
        let mut ending = Ending::new(0);
        match ending.search(body, last) {
            Found::More if body.len() <= IN_MEMORY => Step::NotYet,
            Found::More => {
                let needs = ending.needs();
                ending.shift(needs);
                let statement = body[..STATEMENT].to_vec();
                self.long = Some(Long {
                    context,
                    statement,
                    ending,
                });
                Step::Done(context.began + needs)
            }
            found => {
                let (end, next) = ended(found, &ending, body, gather);
                self.gather(&body[..end.min(STATEMENT)], None, context, gather);
                Step::Done(context.began + next)
            }
        }
    }

    /// Reads a line such as `# administrator command: Quit;`.
    fn command(&mut self, text: &[u8], last: bool, context: Context, gather: &mut Gather) -> Step {
        let body = &text[context.began..];
        let Some(newline) = memchr(b'\n', body).or(last.then_some(body.len())) else {
            return self.not_yet(text, gather);
        };
        let line = body[2..newline].trim_ascii_end();
        let line = line.strip_suffix(b";").unwrap_or(line);
        self.gather(&line[..line.len().min(STATEMENT)], None, context, gather);
        Step::Done((context.began + newline + 1).min(text.len()))
    }

    /// Continues a long statement.
    #[cold]
    fn go_on(&mut self, text: &[u8], last: bool, gather: &mut Gather) -> Step {
        let Some(mut long) = self.long.take() else {
            return Step::NotYet;
        };
        let found = long.ending.search(text, last);
        if found == Found::More {
            let needs = long.ending.needs();
            long.ending.shift(needs);
            self.long = Some(long);
            return match needs {
                0 => Step::NotYet,
                _ => Step::Done(needs),
            };
        }
        let (_, next) = ended(found, &long.ending, text, gather);
        self.gather(&long.statement, None, long.context, gather);
        Step::Done(next)
    }

    #[inline]
    fn gather(
        &mut self,
        statement: &[u8],
        shape: Option<u64>,
        context: Context,
        gather: &mut Gather,
    ) {
        let query_time = self.layouts.total(QUERY_TIME);
        let event = Event {
            statement,
            layout: self.layouts.layout(),
            values: &self.layouts.values,
            who: context.who,
            at_us: context.at_us,
            weight: self.layouts.rate_limit(),
            query_time_us: query_time.filter(|time| *time != IMPOSSIBLE),
        };
        gather.add(&event, shape, &self.names, &self.attributes);
    }
}

/// Where a statement ends and the next event begins; counts what was odd about it.
fn ended(found: Found, ending: &Ending, body: &[u8], gather: &mut Gather) -> (usize, usize) {
    gather.oddities.forged_headers += ending.forged();
    match found {
        Found::End { end, next } => (end, next),
        Found::Cut(next) => {
            gather.oddities.cut_events += 1;
            let statement = body[..next].trim_ascii_end();
            (
                statement.strip_suffix(b";").unwrap_or(statement).len(),
                next,
            )
        }
        Found::More => (body.len(), body.len()),
    }
}
