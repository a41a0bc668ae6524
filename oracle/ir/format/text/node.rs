//! Node statements: `name = operator(arguments) : type {tags} after x renames y module "m" desc "d"`.

use super::lexer::Token;
use super::parse::{Fail, Link, LinkKind, Parse, Parser, unexpected};
use super::words;
use crate::case::Place;
use crate::graph::{Cluster, Node, NodeId, Op, Out, Span, Tags, Value};
use crate::ops;
use crate::ops::shape;
use std::borrow::Cow;

/// The right side of a node statement.
struct Call<'a> {
    op: Op,
    target: Cow<'a, str>,
    args: Span,
    kwargs: Span,
    /// The bytes of the operator.
    span: (usize, usize),
}

impl<'a> Parser<'a> {
    /// `NAME[, NAME ...] = RIGHT SIDE`
    pub(super) fn node(&mut self) -> Parse<()> {
        let first_start = self.here();
        let first = self.node_name()?;
        let first_end = self.end();
        let mut rest = Vec::new();
        while self.eat(',') {
            rest.push(self.node_name()?);
        }
        self.require('=')?;
        let call = self.right_side(&first)?;
        if rest.is_empty() {
            return self.finish_node(&first, call).map(|_| ());
        }
        // Several names are sugar: a node for the tuple, and a getitem for each name but `_`.
        if call.op != Op::Call {
            return Err(self.fail((first_start, first_end), "only a call can have several results"));
        }
        let tuple = self.finish_node(&format!("{first}_tuple"), call)?;
        let parts = match self.graph.node(tuple).out {
            Out::Tuple(span) => self.graph.outs(span).to_vec(),
            _ if self.has_errors() => return Ok(()),
            _ => return Err(self.fail((first_start, first_end), "this call does not return a tuple")),
        };
        if parts.len() != 1 + rest.len() {
            let message = format!("{} names for {} results", 1 + rest.len(), parts.len());
            return Err(self.fail((first_start, first_end), message));
        }
        for (index, (name, out)) in std::iter::once(first).chain(rest).zip(parts).enumerate() {
            if name != "_" {
                let args = self.graph.push_values(&[Value::Node(tuple), Value::Int(index as i64)]);
                let id = self.graph.push(&name, Op::Call, "operator.getitem");
                let node = self.graph.node_mut(id);
                (node.args, node.out) = (args, out);
            }
        }
        Ok(())
    }

    /// `output VALUE`
    pub(super) fn output_line(&mut self) -> Parse<()> {
        let spanned = self.bump();
        let value = self.value()?;
        let args = self.graph.push_values(&[value]);
        let span = (spanned.start, spanned.end);
        let call = Call { op: Op::Output, target: Cow::Borrowed("output"), args, kwargs: Span::EMPTY, span };
        self.finish_node("output", call).map(|_| ())
    }

    /// `cluster NAME = [MEMBERS]`
    pub(super) fn cluster_line(&mut self) -> Parse<()> {
        self.bump();
        let name = self.word_or_text("the name of the cluster")?;
        self.require('=')?;
        self.require('[')?;
        let index = self.graph.clusters.len();
        self.graph.clusters.push(Cluster { name: name.clone(), members: Vec::new() });
        self.list(']', |parser| parser.link(LinkKind::Member(index)))?;
        let part = self.part;
        self.finish(|| Place::Cluster(part, name.clone()))
    }

    fn right_side(&mut self, name: &Cow<'a, str>) -> Parse<Call<'a>> {
        let second = self.second();
        let start = self.here();
        if self.at('%') || second == Token::Mark('[') {
            return self.item(start);
        }
        let op = match *self.peek() {
            Token::Word("input") => Op::Placeholder,
            Token::Word("attr") => Op::GetAttr,
            Token::Word("output") => Op::Output,
            Token::Word(_) | Token::Text(_) => Op::Call,
            _ => return Err(self.unexpected("`input`, `attr` or a call such as `relu(x)`")),
        };
        let mut target = match op {
            Op::Call => self.operator()?,
            Op::Output => Cow::Borrowed("output"),
            Op::Placeholder | Op::GetAttr => name.clone(),
        };
        if op != Op::Call {
            self.bump();
            if matches!(self.peek(), Token::Text(_))
                || (op == Op::GetAttr && matches!(self.peek(), Token::Word(_)))
            {
                target = Cow::Owned(self.word_or_text("a target")?);
            }
        }
        let span = (start, self.end());
        let (args, kwargs) = if self.eat('(') {
            self.arguments(&target, op)?
        } else if op == Op::Call {
            return Err(self.unexpected("`(`"));
        } else {
            (Span::EMPTY, Span::EMPTY)
        };
        Ok(Call { op, target, args, kwargs, span })
    }

    /// `x[0]`, which is `getitem(x, 0)`.
    fn item(&mut self, start: usize) -> Parse<Call<'a>> {
        let of = self.reference()?;
        let span = (start, self.end());
        self.require('[')?;
        self.skip_lines();
        let index = self.value()?;
        self.skip_lines();
        self.require(']')?;
        let args = self.graph.push_values(&[of, index]);
        Ok(Call { op: Op::Call, target: Cow::Borrowed("operator.getitem"), args, kwargs: Span::EMPTY, span })
    }

    /// The target of a call: a short name, or a target in full.
    fn operator(&mut self) -> Parse<Cow<'a, str>> {
        let spanned = self.bump();
        match &spanned.token {
            Token::Text(target) => Ok(target.clone()),
            Token::Word(word) => match ops::by_short_name(word) {
                Some(info) => Ok(Cow::Borrowed(info.target.as_str())),
                None if word.contains('.') => Ok(Cow::Borrowed(word)),
                None if *self.peek() != Token::Mark('(') => {
                    Err(unexpected(&spanned, "`input`, `attr` or a call such as `relu(x)`"))
                }
                None => {
                    let fail =
                        self.fail((spanned.start, spanned.end), format!("no operator is called `{word}`"));
                    let shorts = ops::rows().iter().map(|info| info.short).filter(|short| !short.is_empty());
                    Err(match words::nearest(word, shorts) {
                        Some(near) => fail.help(format!("did you mean `{near}`?")),
                        None => fail.help("an operator without a short name is written as FX's target, such as aten.relu.default"),
                    })
                }
            },
            _ => Err(unexpected(&spanned, "an operator")),
        }
    }

    /// Positional and keyword arguments up to `)`.
    fn arguments(&mut self, target: &str, op: Op) -> Parse<(Span, Span)> {
        let size_at = if op == Op::Call { super::group_size_position(target) } else { None };
        let mark = self.values.len();
        let mut kwargs: Vec<Value> = Vec::new();
        self.list(')', |parser| {
            if parser.second() == Token::Mark('=') {
                let key = parser.word_or_text("the name of a parameter")?;
                parser.bump();
                parser.skip_lines();
                let key = Value::Str(parser.graph.intern(&key));
                let value = parser.value()?;
                kwargs.extend([key, value]);
                return Ok(());
            }
            if !kwargs.is_empty() {
                return Err(parser.unexpected("a keyword argument after a keyword argument"));
            }
            if size_at == Some(parser.values.len() - mark)
                && let Token::Word(word) = *parser.peek()
                && words::is_bare_group(&parser.groups, word)
            {
                // The group without its size: the size follows from the world.
                let size = parser.groups.size(word).unwrap_or(0);
                parser.values.push(Value::Int(i64::from(size)));
            }
            let value = parser.value()?;
            parser.values.push(value);
            Ok(())
        })?;
        let args = self.graph.push_values(&self.values[mark..]);
        self.values.truncate(mark);
        let kwargs = self.graph.push_values(&kwargs);
        Ok((args, kwargs))
    }

    /// What follows the right side; adds the node.
    fn finish_node(&mut self, name: &str, call: Call<'a>) -> Parse<NodeId> {
        let Call { op, target, args, kwargs, span } = call;
        let typed = self.eat(':');
        let out = if typed { self.ty()? } else { Out::Absent };
        let name_id = self.graph.intern(name);
        let target = self.graph.intern_target(&target);
        let id = self.graph.push_node(Node { args, kwargs, out, ..Node::new(name_id, op, target) });
        if !typed {
            self.infer(id, op, span)?;
        }
        self.attributes(id)?;
        let part = self.part;
        let body = self.body_place();
        self.finish(|| body.clone().unwrap_or_else(|| Place::Node(part, name.to_string())))?;
        Ok(id)
    }

    /// Finds the result of a node whose type is not written.
    fn infer(&mut self, id: NodeId, op: Op, span: (usize, usize)) -> Parse<()> {
        let found = match op {
            Op::Output | Op::GetAttr => return Ok(()),
            Op::Placeholder => Err("an input needs a type".to_string()),
            Op::Call => self.inferred(id),
        };
        match found {
            Ok(out) => {
                self.graph.node_mut(id).out = out;
                Ok(())
            }
            // After an error its consequences are not worth a message.
            Err(_) if op == Op::Call && self.has_errors() && self.lacks_input(id) => Ok(()),
            Err(why) => {
                Err(self.fail(span, why).help("write the type behind a colon, such as `: f32[4, 8]`"))
            }
        }
    }

    /// What the rule of a call's operator says that it returns, or why there is no answer.
    fn inferred(&mut self, id: NodeId) -> Result<Out, String> {
        self.ops.update(&self.graph);
        let device = self.graph.intern(&self.device);
        match shape::record(&mut self.graph, &self.ops, id, Some(device)) {
            Ok(Some(out)) => Ok(out),
            Ok(None) => Err(self.undecided(id)),
            Err(error) => Err(format!("this call {error}")),
        }
    }

    /// Whether something that the node takes is missing or has no result on record.
    fn lacks_input(&self, id: NodeId) -> bool {
        let mut lacks = false;
        self.graph.for_each_dangling(id, &mut |_: &str| lacks = true);
        self.graph
            .for_each_input(id, &mut |input: NodeId| lacks |= self.graph.node(input).out == Out::Absent);
        lacks
    }

    fn undecided(&self, id: NodeId) -> String {
        let mut unknown = None;
        self.graph
            .for_each_dangling(id, &mut |name: &str| unknown = unknown.take().or(Some(name.to_string())));
        match unknown {
            Some(name) => format!("this call needs a type, because {} is not known yet", words::quote(&name)),
            None => "this call needs a type".to_string(),
        }
    }

    fn attributes(&mut self, id: NodeId) -> Parse<()> {
        loop {
            if self.at('{') {
                let tags = self.tags()?;
                self.graph.node_mut(id).tags = self.graph.intern_tags(tags);
                continue;
            }
            let Token::Word(word) = *self.peek() else { return Ok(()) };
            match word {
                "after" => {
                    self.bump();
                    self.link(LinkKind::After(id))?;
                    while self.eat(',') {
                        self.link(LinkKind::After(id))?;
                    }
                }
                "renames" => {
                    self.bump();
                    self.link(LinkKind::Renames(id))?;
                    while self.eat(',') {
                        self.link(LinkKind::Renames(id))?;
                    }
                }
                "module" | "desc" => {
                    self.bump();
                    let text = self.text("a string")?;
                    let text = Some(self.graph.intern(&text));
                    let node = self.graph.node_mut(id);
                    *(if word == "module" { &mut node.module } else { &mut node.desc }) = text;
                }
                _ => {
                    return Err(
                        self.unexpected("`after`, `renames`, `module`, `desc`, tags or the end of the line")
                    );
                }
            }
        }
    }

    /// A name that must be a node's in the end.
    fn link(&mut self, kind: LinkKind) -> Parse<()> {
        let start = self.here();
        let name = self.node_name()?;
        let span = (start, self.end());
        self.links.push(Link { kind, name, span });
        Ok(())
    }

    /// `{recompute: MUST_SAVE, seq_nr: 7, ...}`
    fn tags(&mut self) -> Parse<Tags> {
        self.bump();
        let mut tags = Tags::default();
        self.list('}', |parser| {
            let start = parser.here();
            let key = parser.word_or_text("a tag")?;
            let span = (start, parser.end());
            parser.require(':')?;
            match key.as_str() {
                "recompute" => tags.recompute = Some(parser.tag_text()?),
                "partitioner_tag" => tags.partitioner_tag = Some(parser.tag_text()?),
                "custom" => tags.custom = Some(parser.tag_text()?),
                "extra" => tags.extra = Some(parser.tag_text()?),
                "ac_graph_id" => tags.ac_graph_id = Some(parser.int("an integer")?),
                "seq_nr" => tags.seq_nr = Some(parser.int("an integer")?),
                "autograd_backward" => tags.autograd_backward = Some(parser.tag_bool()?),
                "is_gradient_acc" => tags.is_gradient_acc = Some(parser.tag_bool()?),
                _ => {
                    let fail: Fail = parser.fail(span, format!("no tag is called {}", words::quote(&key)));
                    return Err(fail.help(
                        "tags: recompute, partitioner_tag, custom, extra, ac_graph_id, seq_nr, autograd_backward, is_gradient_acc",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(tags)
    }

    fn tag_text(&mut self) -> Parse<crate::graph::Str> {
        let text = self.word_or_text("a word or string")?;
        Ok(self.graph.intern(&text))
    }

    fn tag_bool(&mut self) -> Parse<bool> {
        let spanned = self.bump();
        match spanned.token {
            Token::Word("True" | "true") => Ok(true),
            Token::Word("False" | "false") => Ok(false),
            _ => Err(unexpected(&spanned, "`True` or `False`")),
        }
    }
}
