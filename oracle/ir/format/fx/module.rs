//! Printed modules: classes, signatures, statements.
//!
//! What stands in the text, and nothing that follows from it. Sub-modules are classes inside the class.

use super::FxError;
use super::python::{Py, Reader};
use rustc_hash::FxHashMap;

/// A class.
#[derive(Debug)]
pub(super) struct Class<'t> {
    pub(super) name: &'t str,
    /// Where its line begins.
    pub(super) at: usize,
    pub(super) inputs: Vec<Input<'t>>,
    pub(super) statements: Vec<Statement<'t>>,
    /// What it returns; `None` where the text ends before it.
    pub(super) output: Option<Py<'t>>,
    /// The descriptors of what it returns, in order, where they are printed.
    pub(super) descriptors: Vec<&'t str>,
    /// How far its line is indented.
    indent: usize,
}

/// An input.
#[derive(Clone, Debug)]
pub(super) struct Input<'t> {
    pub(super) name: &'t str,
    /// Its name in the signature, where the body gives it another one.
    pub(super) target: &'t str,
    pub(super) annotation: Option<String>,
    pub(super) descriptor: Option<&'t str>,
    pub(super) at: usize,
}

/// A node.
#[derive(Debug)]
pub(super) struct Statement<'t> {
    pub(super) name: &'t str,
    pub(super) annotation: Option<String>,
    pub(super) value: Py<'t>,
    /// The comment that holds for it.
    pub(super) comment: Option<&'t str>,
    /// The names whose last use it is.
    pub(super) last_uses: Vec<&'t str>,
    pub(super) at: usize,
}

/// Where the reader stands in a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before `def forward`.
    Head,
    Body,
    /// Behind `return`.
    Tail,
}

/// Reads all classes of a text, in the order in which they are printed.
pub(super) fn classes(text: &str) -> Result<Vec<Class<'_>>, FxError> {
    let mut reader = Reader::new(text);
    let mut classes: Vec<Class<'_>> = Vec::new();
    let mut state = State::Tail;
    let mut comment = None;
    while !reader.is_at_end() {
        let start = reader.at;
        reader.blanks();
        let indent = reader.at - start;
        let rest = &text[reader.at..];
        if let Some(name) = class_name(rest) {
            classes.push(Class {
                name,
                at: start,
                inputs: Vec::new(),
                statements: Vec::new(),
                output: None,
                descriptors: Vec::new(),
                indent,
            });
            (state, comment) = (State::Head, None);
            reader.line();
        } else if let Some(class) = classes.last_mut() {
            match state {
                State::Head if rest.starts_with("def forward(") => {
                    signature(&mut reader, class)?;
                    state = State::Body;
                }
                State::Body if !rest.starts_with('\n') && indent <= class.indent => {
                    return Err(reader.error(format!("class {} ends before it returns", class.name)));
                }
                State::Body => state = body_line(&mut reader, class, &mut comment)?,
                State::Head | State::Tail => {
                    reader.line();
                }
            }
        } else {
            reader.line();
        }
        // Over the line end.
        reader.at = (reader.at + 1).min(text.len());
    }
    Ok(classes)
}

/// The classes inside a class: those that follow it and are indented further.
pub(super) fn inside<'c, 't>(classes: &'c [Class<'t>], class: &Class<'t>) -> &'c [Class<'t>] {
    let from = classes.partition_point(|other| other.at <= class.at);
    let length = classes[from..].iter().take_while(|other| other.indent > class.indent).count();
    &classes[from..from + length]
}

/// The name of the class that a line begins.
fn class_name(line: &str) -> Option<&str> {
    let line = line.split('\n').next()?;
    // Text logs print the name of a file before it.
    let from = if line.starts_with("class ") { 0 } else { line.find(" class ")? + 1 };
    let (name, bases) = line[from + 6..].split_once('(')?;
    bases.trim_end().starts_with("torch.nn.Module):").then_some(name)
}

/// A line of a body; where the reader stands behind it.
fn body_line<'t>(
    reader: &mut Reader<'t>,
    class: &mut Class<'t>,
    comment: &mut Option<&'t str>,
) -> Result<State, FxError> {
    let rest = &reader.text[reader.at..];
    if rest.is_empty() || rest.starts_with('\n') {
        return Ok(State::Body);
    }
    if rest.starts_with('#') {
        *comment = Some(reader.line().trim_start_matches('#').trim());
    } else if let Some(block) = rest.strip_prefix("\"\"\"") {
        // FX_GRAPH_SHOW_META: all that `node.meta` holds.
        let Some(length) = block.find("\"\"\"") else {
            return Err(reader.error("a block of metadata that does not end"));
        };
        reader.at += length + 6;
    } else if rest.starts_with("return") && !rest[6..].starts_with(|c: char| c == '_' || c.is_alphanumeric())
    {
        reader.at += 6;
        output(reader, class)?;
        return Ok(State::Tail);
    } else if rest.starts_with("pass\n") {
        reader.line();
    } else {
        statement(reader, class, *comment)?;
        end_of_line(reader)?;
    }
    Ok(State::Body)
}

/// Nothing but a comment may stand on the rest of a line.
fn end_of_line(reader: &mut Reader<'_>) -> Result<(), FxError> {
    reader.blanks();
    let rest = &reader.text[reader.at..];
    match rest.is_empty() || rest.starts_with('\n') || rest.starts_with('#') {
        true => {
            reader.line();
            Ok(())
        }
        false => Err(reader.error("expected the end of the line")),
    }
}

/// The annotation behind a colon.
fn annotation(reader: &mut Reader<'_>) -> Result<Option<String>, FxError> {
    if !reader.takes(":") {
        return Ok(None);
    }
    match reader.expression()? {
        Py::Str(text) => Ok(Some(text)),
        // The type of a Python argument: `x : torch.Tensor`.
        _ => Ok(None),
    }
}

/// `NAME: "ANNOTATION" = VALUE;  a = b = None`, and what a joint graph begins with.
fn statement<'t>(
    reader: &mut Reader<'t>,
    class: &mut Class<'t>,
    comment: Option<&'t str>,
) -> Result<(), FxError> {
    let at = reader.at;
    let name = reader.word();
    if name.is_empty() {
        return Err(reader.error("expected the name of a node"));
    }
    if reader.takes(",") {
        return unpacking(reader, class, name);
    }
    let annotation = annotation(reader)?;
    reader.blanks();
    let is_declaration = annotation.is_some() && !reader.text[reader.at..].starts_with('=');
    if is_declaration {
        return declaration(reader, class, Input { name, target: name, annotation, descriptor: None, at });
    }
    if !reader.takes("=") {
        let message =
            "a statement of Python that changes something in place: this is no graph of ATen operators";
        let is_python =
            ["+=", "-=", "*=", "/=", "//=", "|=", "&=", "@="].iter().any(|mark| reader.takes(mark));
        return Err(reader.error(if is_python { message } else { "expected \"=\"" }));
    }
    let value = reader.expression()?;
    // Dynamo gives its inputs their names in the body.
    if let Py::Name(of) = value
        && let Some(input) = class.inputs.iter_mut().find(|input| input.name == of)
    {
        input.name = name;
        return Ok(());
    }
    let mut last_uses = Vec::new();
    if reader.takes(";") {
        loop {
            let word = reader.word();
            match (word, reader.takes("=")) {
                ("None", false) | ("", false) => break,
                ("", true) | (_, false) => return Err(reader.error("expected \"NAME = None\"")),
                (word, true) => last_uses.push(word),
            }
        }
    }
    class.statements.push(Statement { name, annotation, value, comment, last_uses, at });
    Ok(())
}

/// `primals_1: "f32[4]"  # DESCRIPTOR`, or several on one line.
fn declaration<'t>(reader: &mut Reader<'t>, class: &mut Class<'t>, first: Input<'t>) -> Result<(), FxError> {
    class.inputs.push(first);
    while reader.takes(";") {
        let at = reader.at;
        let name = reader.word();
        if name.is_empty() {
            break;
        }
        let annotation = annotation(reader)?;
        class.inputs.push(Input { name, target: name, annotation, descriptor: None, at });
    }
    reader.blanks();
    if let Some(text) = reader.text[reader.at..].strip_prefix('#') {
        let text = text.split('\n').next().unwrap_or(text).trim();
        if let Some(last) = class.inputs.last_mut() {
            last.descriptor = Some(text);
        }
    }
    Ok(())
}

/// `a, b, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)`: all inputs, in order.
fn unpacking<'t>(reader: &mut Reader<'t>, class: &mut Class<'t>, first: &'t str) -> Result<(), FxError> {
    let mut names = vec![first];
    loop {
        match (reader.word(), reader.takes("=")) {
            ("", true) => break,
            ("", false) => return Err(reader.error("expected a name")),
            (name, is_last) => {
                names.push(name);
                if is_last {
                    break;
                }
                reader.takes(",");
            }
        }
    }
    let at = reader.at;
    match reader.expression()? {
        Py::Call(call) if call.function == "fx_pytree.tree_flatten_spec" => {}
        _ => return Err(FxError::at(reader.text, at, "expected fx_pytree.tree_flatten_spec(...)")),
    }
    // The signature holds the trees that are taken apart here.
    let mut declared: FxHashMap<&str, Input<'t>> =
        class.inputs.drain(..).map(|input| (input.name, input)).collect();
    class.inputs = names
        .into_iter()
        .map(|name| {
            let plain = Input { name, target: name, annotation: None, descriptor: None, at };
            declared.remove(name).unwrap_or(plain)
        })
        .collect();
    Ok(())
}

/// `def forward(self, a: "f32[4]", b):`, on one line or with an input a line.
fn signature<'t>(reader: &mut Reader<'t>, class: &mut Class<'t>) -> Result<(), FxError> {
    reader.expect("def forward(")?;
    reader.open()?;
    loop {
        reader.blanks();
        if reader.text[reader.at..].starts_with(')') {
            break;
        }
        let at = reader.at;
        let _ = reader.takes("**") || reader.takes("*");
        let name = reader.word();
        if name.is_empty() {
            return Err(reader.error("expected the name of an input"));
        }
        let annotation = annotation(reader)?;
        if reader.takes("=") {
            reader.expression()?;
        }
        let has_comma = reader.takes(",");
        // A descriptor stands behind the comma.
        let from = reader.at;
        reader.blanks();
        let descriptor = reader.comment_since(from);
        if name != "self" {
            class.inputs.push(Input { name, target: name, annotation, descriptor, at });
        }
        if !has_comma {
            break;
        }
    }
    reader.close(")")?;
    // A type of the result may follow.
    let rest = reader.line();
    match rest.trim_end().trim_end_matches(|c| c != ':').ends_with(':') {
        true => Ok(()),
        false => Err(reader.error("expected \":\" behind the signature")),
    }
}

/// What stands behind `return`.
fn output<'t>(reader: &mut Reader<'t>, class: &mut Class<'t>) -> Result<(), FxError> {
    let from = reader.at;
    let value = reader.expression()?;
    class.descriptors = descriptors(&reader.text[from..reader.at]);
    class.output = Some(match value {
        Py::Call(mut call) if call.function == "pytree.tree_unflatten" && !call.args.is_empty() => {
            call.args.swap_remove(0)
        }
        value => value,
    });
    end_of_line(reader)
}

/// The comments behind the elements of what is returned, if it has an element a line.
fn descriptors(text: &str) -> Vec<&str> {
    let described = |line: &'_ str| line.find(",  # ").map(|at| at + 5);
    text.split('\n').filter_map(|line| described(line).map(|at| line[at..].trim())).collect()
}
