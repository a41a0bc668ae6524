//! The parser: tokens to statements, statements to a case; recovery after an error.
//!
//! Recursive descent with one token of lookahead, and a second one where a statement or a value begins. A
//! statement ends with its line, except inside brackets. After an error the parser goes on with the next line;
//! if brackets were open, with the next line that begins in column 1.

use super::error::{ParseError, ParseErrors};
use super::lexer::{Lexer, Spanned, Token};
use super::words::{self, Groups};
use crate::case::{Case, Comment, Part, Place, Program, Recorded, RecordedGraphs, RecordedParts};
use crate::graph::{Graph, NodeId, OrderingEdge, Rename, Value};
use crate::limits::Limit;
use crate::ops::Ops;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// Lists, mappings and tuple types may be nested this deep.
const MAX_DEPTH: usize = Limit::Brackets.standard() as usize;

/// Errors after which the parser gives up.
const MAX_ERRORS: usize = 20;

/// An error on its way to the statement it is in.
#[derive(Debug)]
pub(super) struct Fail {
    start: usize,
    end: usize,
    message: String,
    help: Option<String>,
}

impl Fail {
    pub(super) fn help(mut self, help: impl Into<String>) -> Fail {
        self.help.get_or_insert_with(|| help.into());
        self
    }
}

pub(super) type Parse<T> = Result<T, Fail>;

/// A name in a place where the graph stores a node id: resolved when the graph is complete.
pub(super) struct Link<'a> {
    pub(super) kind: LinkKind,
    pub(super) name: Cow<'a, str>,
    pub(super) span: (usize, usize),
}

pub(super) enum LinkKind {
    /// The node runs after the named one.
    After(NodeId),
    /// The node renames the named one's buffer.
    Renames(NodeId),
    /// The named node is a member of the cluster with this index.
    Member(usize),
}

pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    peeked: Option<Spanned<'a>>,
    last_end: usize,
    /// Where brackets were opened that are still open.
    pub(super) open: Vec<usize>,
    errors: Vec<ParseError>,
    pub(super) case: Case,
    /// The graph that is being read.
    pub(super) graph: Graph,
    /// The groups of its world.
    pub(super) groups: Groups,
    /// Where symbols are in the list of the graph.
    pub(super) symbol_at: FxHashMap<String, usize>,
    pub(super) part: Part,
    /// What the header of the current part has stated so far.
    pub(super) stated: Stated,
    /// The operators of the graph, as far as their rules have been asked for.
    pub(super) ops: Ops,
    /// The device of a tensor type that names none.
    pub(super) device: String,
    /// Ranks that group lists may still name.
    pub(super) rank_budget: u64,
    /// Comments that belong to the next statement.
    pending: Vec<String>,
    /// Whether something has been read that comments can belong to.
    past_head: bool,
    pub(super) links: Vec<Link<'a>>,
    /// The bodies that are being read, from the outside: each one's attribute, and the graph that it belongs to.
    pub(super) within: Vec<(String, Outside<'a>)>,
    /// Argument values under construction, a stack.
    pub(super) values: Vec<Value>,
    outcome: Vec<(Option<u32>, Option<Graph>, Option<Graph>)>,
    refusals: Vec<(Option<u32>, String)>,
    /// The forward and the backward graph of a partition.
    parts: [Option<Graph>; 2],
    statements: usize,
    /// Where the statement at hand begins.
    begun: usize,
    /// Where statements begin, if that is asked for.
    marks: Option<Vec<(Mark, usize)>>,
}

/// A graph that is read on when a body of it ends.
pub(super) struct Outside<'a> {
    graph: Graph,
    links: Vec<Link<'a>>,
}

/// What a statement is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// What a comment may belong to.
    Place(Place),
    /// A symbol of the graph before the pass.
    Symbol(String),
}

/// Header lines that may stand once.
#[derive(Default)]
pub(super) struct Stated {
    pub(super) graph: bool,
    pub(super) world: bool,
    pub(super) device: bool,
    pub(super) symbols: bool,
    pub(super) guards: bool,
}

pub(super) fn parse(text: &str) -> Result<Case, ParseErrors> {
    let mut parser = parser(text);
    parser.file();
    if parser.errors.is_empty() { Ok(parser.case) } else { Err(ParseErrors { errors: parser.errors }) }
}

/// The bytes at which statements begin, as far as the text can be read.
pub(super) fn marks(text: &str) -> Vec<(Mark, usize)> {
    let mut parser = Parser { marks: Some(Vec::new()), ..parser(text) };
    parser.file();
    parser.marks.unwrap_or_default()
}

fn parser(text: &str) -> Parser<'_> {
    // A line is a node, mostly; but many empty lines are not many nodes.
    const SHORT_LINE: usize = 24;
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    Parser {
        groups: Groups::default(),
        symbol_at: FxHashMap::default(),
        text,
        lexer: Lexer::new(text),
        peeked: None,
        last_end: 0,
        open: Vec::new(),
        errors: Vec::new(),
        case: Case::default(),
        graph: Graph::with_capacity(lines.min(text.len() / SHORT_LINE)),
        part: Part::Before,
        stated: Stated::default(),
        ops: Ops::default(),
        device: super::DEFAULT_DEVICE.to_string(),
        rank_budget: Limit::Members.standard(),
        pending: Vec::new(),
        past_head: false,
        links: Vec::new(),
        within: Vec::new(),
        values: Vec::new(),
        outcome: Vec::new(),
        refusals: Vec::new(),
        parts: [None, None],
        statements: 0,
        begun: 0,
        marks: None,
    }
}

/// Tokens.
impl<'a> Parser<'a> {
    pub(super) fn peek(&mut self) -> &Token<'a> {
        &self.peek_spanned().token
    }

    fn peek_spanned(&mut self) -> &Spanned<'a> {
        self.peeked.get_or_insert_with(|| self.lexer.next())
    }

    /// The token after the next.
    pub(super) fn second(&mut self) -> Token<'a> {
        self.peek();
        self.lexer.clone().next().token
    }

    pub(super) fn bump(&mut self) -> Spanned<'a> {
        let spanned = match self.peeked.take() {
            Some(spanned) => spanned,
            None => self.lexer.next(),
        };
        self.last_end = spanned.end;
        spanned
    }

    /// The next token, read as a raw word if it can be one.
    pub(super) fn bump_raw(&mut self) -> Spanned<'a> {
        if let Some(spanned) = self.peeked.take() {
            self.lexer.at = spanned.start;
        }
        let spanned = self.lexer.next_raw();
        self.last_end = spanned.end;
        spanned
    }

    pub(super) fn at(&mut self, mark: char) -> bool {
        *self.peek() == Token::Mark(mark)
    }

    pub(super) fn at_word(&mut self, word: &str) -> bool {
        *self.peek() == Token::Word(word)
    }

    pub(super) fn at_line_end(&mut self) -> bool {
        matches!(self.peek(), Token::Newline | Token::Comment(_) | Token::End)
    }

    pub(super) fn eat(&mut self, mark: char) -> bool {
        let found = self.at(mark);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn require(&mut self, mark: char) -> Parse<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// An error about the next token: "expected ..., found ...".
    pub(super) fn unexpected(&mut self, expected: &str) -> Fail {
        let spanned = self.peek_spanned().clone();
        unexpected(&spanned, expected)
    }

    /// An error about bytes `start..end`.
    pub(super) fn fail(&self, span: (usize, usize), message: impl Into<String>) -> Fail {
        Fail { start: span.0, end: span.1, message: message.into(), help: None }
    }

    /// A comma-separated list up to `close`, over any number of lines. The opening bracket has been read.
    pub(super) fn list(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Parser<'a>) -> Parse<()>,
    ) -> Parse<()> {
        let opened = self.lexer.at;
        self.open.push(opened);
        if self.open.len() > MAX_DEPTH {
            return Err(
                self.fail((opened - 1, opened), format!("brackets nested more than {MAX_DEPTH} deep"))
            );
        }
        loop {
            self.skip_lines();
            if self.eat(close) {
                break;
            }
            item(self)?;
            self.skip_lines();
            if self.eat(',') {
                continue;
            }
            if !self.eat(close) {
                return Err(self.unclosed(&format!("`,` or `{close}`"), opened));
            }
            break;
        }
        self.open.pop();
        Ok(())
    }

    /// Like [`Parser::unexpected`], where the bracket at `opened` may have been forgotten.
    fn unclosed(&mut self, expected: &str, opened: usize) -> Fail {
        let fail = self.unexpected(expected);
        let between = self.text.get(opened..fail.start).unwrap_or("");
        if !between.contains('\n') {
            return fail;
        }
        let line = self.text[..opened].matches('\n').count() + 1;
        fail.help(format!("a bracket of line {line} is still open here"))
    }

    /// Steps over ends of lines and comments inside brackets.
    pub(super) fn skip_lines(&mut self) {
        loop {
            match *self.peek() {
                Token::Newline => {}
                Token::Comment(comment) => self.pending.push(comment.to_string()),
                _ => return,
            }
            self.bump();
        }
    }
}

/// "expected ..., found ..." about a token.
pub(super) fn unexpected(spanned: &Spanned<'_>, expected: &str) -> Fail {
    let message = match &spanned.token {
        Token::Bad(why) => format!("{why}; expected {expected}"),
        token => format!("expected {expected}, found {}", token.describe()),
    };
    Fail { start: spanned.start, end: spanned.end, message, help: None }
}

/// Names, numbers and strings.
impl<'a> Parser<'a> {
    /// A word or string.
    pub(super) fn word_or_text(&mut self, what: &str) -> Parse<String> {
        let spanned = self.bump();
        match spanned.token {
            Token::Word(word) => Ok(word.to_string()),
            Token::Text(text) => Ok(text.into_owned()),
            _ => Err(unexpected(&spanned, what)),
        }
    }

    /// A raw word or string, and whether it is a raw word.
    pub(super) fn raw_or_text(&mut self, what: &str) -> Parse<(String, bool)> {
        let spanned = self.bump_raw();
        match spanned.token {
            Token::Word(word) => Ok((word.to_string(), true)),
            Token::Text(text) => Ok((text.into_owned(), false)),
            _ => Err(unexpected(&spanned, what)),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Parse<String> {
        let spanned = self.bump();
        match spanned.token {
            Token::Text(text) => Ok(text.into_owned()),
            _ => Err(unexpected(&spanned, what)),
        }
    }

    /// The name of a node: a word, `%word` or `%"any text"`.
    pub(super) fn node_name(&mut self) -> Parse<Cow<'a, str>> {
        let marked = self.eat('%');
        let spanned = self.bump();
        match spanned.token {
            Token::Word(word) => Ok(Cow::Borrowed(word)),
            Token::Text(text) if marked => Ok(text),
            _ if marked => Err(unexpected(&spanned, "a name after `%`")),
            _ => Err(unexpected(&spanned, "the name of a node")),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Parse<i64> {
        let spanned = self.bump();
        match spanned.token {
            Token::Number(number) => match number.parse() {
                Ok(n) => Ok(n),
                Err(_) if number.contains(['.', 'e', 'E', 'i']) => Err(unexpected(&spanned, what)),
                Err(_) => {
                    Err(self.fail((spanned.start, spanned.end), "an integer that does not fit 64 bits"))
                }
            },
            _ => Err(unexpected(&spanned, what)),
        }
    }

    pub(super) fn float(&mut self, what: &str) -> Parse<f64> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        match spanned.token {
            Token::Word("inf") => Ok(f64::INFINITY),
            Token::Word("nan") => Ok(f64::NAN),
            Token::Number(number) => match number.parse::<f64>() {
                Ok(x) if x.is_finite() || number.contains('i') => Ok(x),
                _ => Err(self.fail(span, "a number that does not fit a float; infinity is written `inf`")),
            },
            _ => Err(unexpected(&spanned, what)),
        }
    }

    pub(super) fn small_int(&mut self, what: &str) -> Parse<u32> {
        let start = self.peek_spanned().start;
        let n = self.int(what)?;
        let span = (start, self.end());
        u32::try_from(n).map_err(|_| self.fail(span, format!("expected {what}, found {n}")))
    }

    /// Where the next token begins.
    pub(super) fn here(&mut self) -> usize {
        self.peek_spanned().start
    }

    /// Where the last token ended.
    pub(super) fn end(&self) -> usize {
        self.last_end
    }
}

/// The file.
impl Parser<'_> {
    fn file(&mut self) {
        loop {
            let start = self.here();
            match *self.peek() {
                Token::End => break,
                Token::Newline => drop(self.bump()),
                Token::Comment(comment) => {
                    self.pending.push(comment.to_string());
                    self.bump();
                }
                _ => {
                    self.statements += 1;
                    self.begun = start;
                    if let Err(fail) = self.statement() {
                        self.report(fail.start, fail.end, fail.message, fail.help);
                        if self.errors.len() >= MAX_ERRORS {
                            return;
                        }
                        self.recover(start, fail.start);
                    }
                }
            }
        }
        self.finish_part();
        self.attach_all(|| Place::End);
        if self.statements == 0 {
            self.report(0, 0, "the file holds no case".to_string(), None);
        }
        let outcome = std::mem::take(&mut self.outcome);
        let mut graphs = Vec::with_capacity(outcome.len());
        for (rank, unrepaired, repaired) in outcome {
            match repaired {
                Some(repaired) => {
                    let refused = self.refusals.iter().find(|(r, _)| *r == rank).map(|(_, why)| why.clone());
                    graphs.push((rank, RecordedGraphs { unrepaired, repaired, refused }));
                }
                None => {
                    let end = self.text.len();
                    let of = rank.map(|r| format!(" rank {r}")).unwrap_or_default();
                    self.report(end, end, format!("`--- unrepaired{of}` without `--- after{of}`"), None);
                }
            }
        }
        self.case.outcome = match graphs.as_slice() {
            [] => None,
            [(None, _)] => graphs.pop().map(|(_, graphs)| Recorded::Same(Box::new(graphs))),
            _ => Some(Recorded::PerRank(
                graphs.into_iter().filter_map(|(rank, graphs)| Some((rank?, graphs))).collect(),
            )),
        };
        self.case.parts = match std::mem::take(&mut self.parts) {
            [Some(forward), Some(backward)] => Some(Box::new(RecordedParts { forward, backward })),
            [None, None] => None,
            [forward, _] => {
                let end = self.text.len();
                let (one, other) =
                    if forward.is_some() { ("forward", "backward") } else { ("backward", "forward") };
                self.report(end, end, format!("`--- {one}` without `--- {other}`"), None);
                None
            }
        };
        let mut comments = std::mem::take(&mut self.case.comments);
        comments.sort_by(|a, b| a.place.cmp(&b.place));
        // Lines of the same name have what stands beside them together.
        let mut beside: Option<usize> = None;
        for comment in comments {
            let here = &mut self.case.comments;
            let known = beside.and_then(|at| here.get_mut(at)).filter(|kept| kept.place == comment.place);
            match known.filter(|_| comment.beside) {
                Some(_) if comment.text.is_empty() => {}
                Some(kept) => kept.text.extend([" ", &comment.text]),
                None => {
                    beside = if comment.beside { Some(here.len()) } else { beside };
                    here.push(comment);
                }
            }
        }
    }

    fn report(&mut self, start: usize, end: usize, message: String, help: Option<String>) {
        self.errors.push(ParseError::new(self.text, start, end, message, help));
    }

    /// Whether an error has been found: what follows may be wrong only because of it.
    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Goes to where the next statement is likely to begin.
    fn recover(&mut self, statement: usize, error: usize) {
        let in_brackets = !self.open.is_empty();
        self.open.clear();
        self.values.clear();
        self.peeked = None;
        self.pending.clear();
        let bytes = self.text.as_bytes();
        let begins_line = |at: usize| at == 0 || bytes[at - 1] == b'\n';
        let mut at = error.max(statement);
        // The error may be that the statement goes on where the next one already begins.
        if !(in_brackets && at > statement && begins_line(at) && at < bytes.len()) {
            loop {
                at = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n + 1);
                let closes =
                    matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n' | b')' | b']' | b'}' | b'#'));
                if at == bytes.len() || !in_brackets || !closes {
                    break;
                }
            }
        }
        self.lexer.at = at;
    }

    fn statement(&mut self) -> Parse<()> {
        if *self.peek() == Token::Dashes {
            return self.section();
        }
        if self.part == Part::Claim && !self.at_word("expect") {
            return self.claim_line();
        }
        let defines = matches!(self.second(), Token::Mark('=' | ','));
        let is_foreign =
            matches!(*self.peek(), Token::Word(word) if !defines && !BODY_KEYWORDS.contains(&word));
        if let (true, Some((body, _))) = (is_foreign, self.within.last()) {
            let expected = format!("a node, `output`, `body` or the `end` of body {}", words::quote(body));
            return Err(self.unexpected(&expected));
        }
        match *self.peek() {
            Token::Mark('%') => self.node(),
            Token::Word(_) if defines => self.node(),
            Token::Word(word) => match word {
                "graph" => self.graph_line(),
                "world" => self.world_line(),
                "groups" => self.groups_line(),
                "device" => self.device_line(),
                "symbol" => self.symbol_line(),
                "guard" => self.guard_line(),
                "facts" => self.facts_line(),
                "pass" => self.pass_line(),
                "estimates" => self.estimates_line(),
                "output" => self.output_line(),
                "cluster" => self.cluster_line(),
                "body" => self.body_line(),
                "end" => self.end_line(),
                "expect" => self.expect_line(),
                _ => {
                    let fail = self.unexpected("a statement");
                    Err(match words::nearest(word, KEYWORDS.iter().copied()) {
                        Some(near) => fail.help(format!("did you mean `{near}`?")),
                        None => fail.help("a node is written `name = operator(arguments) : type`"),
                    })
                }
            },
            _ => Err(self.unexpected("a statement")),
        }
    }

    /// Ends a statement that comments can belong to.
    pub(super) fn finish(&mut self, place: impl Fn() -> Place) -> Parse<()> {
        if !self.at_line_end() {
            return Err(self.unexpected("the end of the line"));
        }
        if self.marks.is_some() {
            self.mark(Mark::Place(place()));
        }
        self.attach_all(&place);
        if let Token::Comment(comment) = *self.peek() {
            self.case.comments.push(Comment { place: place(), beside: true, text: comment.to_string() });
            self.bump();
        }
        Ok(())
    }

    /// Writes down where the statement at hand begins, if that is asked for.
    pub(super) fn mark(&mut self, mark: Mark) {
        let begun = self.begun;
        if let Some(marks) = &mut self.marks {
            marks.push((mark, begun));
        }
    }

    /// Ends a statement that may vanish when the case is printed: its comments go to the next one.
    pub(super) fn finish_bare(&mut self) -> Parse<()> {
        if self.at_line_end() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    /// Gives the pending comments to `place`, or to the head of the file if they are the first ones.
    fn attach_all(&mut self, place: impl Fn() -> Place) {
        let in_head = !std::mem::replace(&mut self.past_head, true);
        for text in std::mem::take(&mut self.pending) {
            let place = if in_head { Place::Head } else { place() };
            self.case.comments.push(Comment { place, beside: false, text });
        }
    }

    /// `body ATTRIBUTE`: what follows, up to `end`, is what the sub-module of that name does.
    fn body_line(&mut self) -> Parse<()> {
        let start = self.bump().start;
        let attribute = self.word_or_text("the attribute that holds the body")?;
        let span = (start, self.end());
        if self.graph.subgraph(&attribute).is_some() {
            return Err(
                self.fail(span, format!("body {} stands here for the second time", words::quote(&attribute)))
            );
        }
        if self.within.len() as u64 >= Limit::Bodies.standard() {
            if self.has_errors() {
                return self.finish_bare();
            }
            return Err(self.fail(span, format!("bodies inside one another: the limit is {}", Limit::Bodies)));
        }
        // While it is read, the symbols of the graph around it are its own.
        let symbols = self.graph.symbols.clone();
        let outside =
            Outside { graph: std::mem::take(&mut self.graph), links: std::mem::take(&mut self.links) };
        self.within.push((attribute, outside));
        self.graph.symbols = symbols;
        self.ops = Ops::default();
        self.finish_in_body()
    }

    /// `end` of a body.
    fn end_line(&mut self) -> Parse<()> {
        let spanned = self.bump();
        if self.within.is_empty() {
            // After an error a body may be missing only because of it.
            return match self.has_errors() {
                true => self.finish_bare(),
                false => Err(self.fail((spanned.start, spanned.end), "`end` without a body")),
            };
        }
        self.finish_in_body()?;
        self.end_body();
        Ok(())
    }

    fn finish_in_body(&mut self) -> Parse<()> {
        let place = self.body_place();
        self.finish(|| place.clone().unwrap_or(Place::End))
    }

    /// Completes a body, if there is one, and goes on with the graph that it belongs to.
    fn end_body(&mut self) {
        let Some((attribute, outside)) = self.within.pop() else { return };
        let mut body = self.finish_graph();
        body.symbols.clear();
        (self.graph, self.links) = (outside.graph, outside.links);
        self.graph.subgraphs.push((attribute, Arc::new(body)));
    }

    /// Where the comments in a body belong; `None` outside of one.
    pub(super) fn body_place(&self) -> Option<Place> {
        let path: Vec<&str> = self.within.iter().map(|(attribute, _)| attribute.as_str()).collect();
        (!path.is_empty()).then(|| Place::Body(self.part, path.join(" ")))
    }

    fn section(&mut self) -> Parse<()> {
        let start = self.bump().start;
        let what = self.word_or_text("`after`, `unrepaired`, `forward`, `backward`, `rank` or `claim`")?;
        if what == "rank" {
            return self.program_section(start);
        }
        let rank = if self.eat_word("rank") { Some(self.small_int("a rank")?) } else { None };
        if what == "after" && self.eat_word("refused") {
            let why = self.word_or_text("the reason of the refusal")?;
            self.refusals.push((rank, why));
        }
        let part = match what.as_str() {
            "after" => Part::After(rank),
            "unrepaired" => Part::Unrepaired(rank),
            "forward" if rank.is_none() => Part::Forward,
            "backward" if rank.is_none() => Part::Backward,
            "claim" if rank.is_none() => Part::Claim,
            _ => {
                let span = (start, self.end());
                let message = "a section is `--- after`, `--- unrepaired`, `--- forward`, `--- backward`, `--- rank N` or `--- \
                               claim`";
                return Err(self.fail(span, message));
            }
        };
        let span = (start, self.end());
        self.finish_part();
        let taken = match part {
            Part::Before | Part::Program(_) => false,
            Part::Claim => self.case.claim.replace(Box::default()).is_some(),
            Part::Forward => self.parts[0].replace(Graph::default()).is_some(),
            Part::Backward => self.parts[1].replace(Graph::default()).is_some(),
            Part::After(_) | Part::Unrepaired(_) => self.outcome_slot(part, rank, span)?,
        };
        self.begin_part(part);
        if taken {
            return Err(self.fail(span, "this section stands here for the second time"));
        }
        self.finish(|| Place::Section(part))
    }

    /// Begins a graph that shares its world, symbols and facts with the one before the pass.
    fn begin_part(&mut self, part: Part) {
        self.part = part;
        let before = &self.case.graph;
        self.graph = Graph::new(before.name.clone());
        self.graph.kind = before.kind.clone();
        self.graph.world = before.world.clone();
        self.groups = Groups::of(&before.world);
        self.graph.symbols = before.symbols.clone();
        self.graph.facts = before.facts.clone();
    }

    /// `--- rank 1 3` or `--- rank 4 to 7`: the graph of these ranks before the pass.
    fn program_section(&mut self, start: usize) -> Parse<()> {
        let mut ranks = Vec::new();
        while ranks.is_empty() || !self.at_line_end() {
            self.eat(',');
            self.rank_range(&mut ranks, "a rank")?;
        }
        let span = (start, self.end());
        self.finish_part();
        let part = Part::Program(self.case.programs.len());
        let mut seen: Vec<u32> =
            self.case.programs.iter().flat_map(|p| &p.ranks).chain(&ranks).copied().collect();
        seen.sort_unstable();
        let twice = seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        self.case.programs.push(Program { ranks, graph: Graph::default() });
        self.begin_part(part);
        if let Some(rank) = twice {
            return Err(self.fail(span, format!("rank {rank} is given a graph for the second time")));
        }
        self.finish(|| Place::Section(part))
    }

    /// Makes room for a section of an outcome; whether there was one already.
    fn outcome_slot(&mut self, part: Part, rank: Option<u32>, span: (usize, usize)) -> Parse<bool> {
        if self.outcome.iter().any(|(r, _, _)| r.is_some() != rank.is_some()) {
            return Err(self.fail(span, "sections with and without a rank in one file"));
        }
        let index = match self.outcome.iter().position(|(r, _, _)| *r == rank) {
            Some(index) => index,
            None => {
                self.outcome.push((rank, None, None));
                self.outcome.len() - 1
            }
        };
        let entry = &mut self.outcome[index];
        let slot = if matches!(part, Part::After(_)) { &mut entry.2 } else { &mut entry.1 };
        Ok(slot.replace(Graph::default()).is_some())
    }

    /// Completes the graph that has been read.
    fn finish_graph(&mut self) -> Graph {
        self.graph.resolve_references();
        // After an error a name may be missing only because of it.
        let blameless = !self.has_errors();
        for link in std::mem::take(&mut self.links) {
            let Some(id) = self.graph.find(&link.name) else {
                if blameless && self.errors.len() < MAX_ERRORS {
                    let message = format!("no node is called {}", words::quote(&link.name));
                    self.report(link.span.0, link.span.1, message, None);
                }
                continue;
            };
            match link.kind {
                LinkKind::After(node) => self.graph.ordering.push(OrderingEdge { before: id, after: node }),
                LinkKind::Renames(node) => self.graph.renames.push(Rename { by: node, of: id }),
                LinkKind::Member(cluster) => self.graph.clusters[cluster].members.push(id),
            }
        }
        self.ops = Ops::default();
        // Of two lines about one target the last one holds.
        let mut stated = FxHashSet::default();
        self.graph.facts.reverse();
        self.graph.facts.retain(|(target, _)| stated.insert(target.clone()));
        self.graph.facts.reverse();
        self.graph.shrink_to_fit();
        std::mem::take(&mut self.graph)
    }

    /// Completes the graph that has been read and puts it where it belongs.
    fn finish_part(&mut self) {
        while let Some((attribute, _)) = self.within.last() {
            let message = format!("body {} has no `end`", words::quote(attribute));
            if !self.has_errors() {
                self.report(self.last_end, self.last_end, message, None);
            }
            self.end_body();
        }
        self.stated = Stated::default();
        let graph = self.finish_graph();
        if let (Err(message), false) = (graph.check_bodies(), self.has_errors()) {
            self.report(self.last_end, self.last_end, message, None);
        }
        let slot = match self.part {
            Part::Before => {
                self.case.graph = graph;
                return;
            }
            Part::Unrepaired(rank) => self.outcome.iter_mut().find(|e| e.0 == rank).map(|e| &mut e.1),
            Part::After(rank) => self.outcome.iter_mut().find(|e| e.0 == rank).map(|e| &mut e.2),
            Part::Forward => self.parts.first_mut(),
            Part::Backward => self.parts.last_mut(),
            Part::Program(index) => {
                if let Some(program) = self.case.programs.get_mut(index) {
                    program.graph = graph;
                }
                return;
            }
            // A claim has no graph of its own.
            Part::Claim => return,
        };
        if let Some(slot) = slot {
            *slot = Some(graph);
        }
    }
}

/// The words that may begin a statement of a body.
const BODY_KEYWORDS: [&str; 3] = ["output", "body", "end"];

/// The words that begin a statement.
const KEYWORDS: [&str; 14] = [
    "graph",
    "world",
    "groups",
    "device",
    "symbol",
    "guard",
    "facts",
    "pass",
    "estimates",
    "output",
    "cluster",
    "body",
    "end",
    "expect",
];
