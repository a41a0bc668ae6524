//! Pickles, read without executing anything.
//!
//! # The idea
//!
//! A pickle is a program for a small machine with a stack, a table of what was made before (the memo) and opcodes that
//! push, collect and store. Numbers, texts, lists, tuples, sets and dictionaries need nothing else. To make anything
//! more, a pickle names a class or a function and has it called; that is how a file can run whatever it likes. Here
//! nothing is looked up and nothing is called: a pickle that names anything is refused, and the error names what it
//! needs. Only a few names stand for data and nothing else (`Known`).
//!
//! There is no recursion: the machine's own stack holds what is open. What is pushed and remembered is counted, so that
//! a short file cannot fill the memory.
//!
//! Protocols 2 to 5, as Python's `pickle` and PyTorch's own writer in C++ (the flight recorder) use them. Source:
//! `pickletools` of Python 3.11, which describes each opcode.
//!
//! # What it does not do
//!
//! Protocols 0 and 1, bytes that travel outside of the file (protocol 5), and the contents of bytes: no dump that is
//! read here needs them.

use super::objects::{Allowance, Builder, FALSE, NONE, Object, Objects, TRUE};
use rustc_hash::FxHashMap;

/// Why a pickle cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("byte {offset}: {message}")]
pub struct PickleError {
    /// The byte at which the opcode begins, from 0.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// The class or function that it needs, where that is why.
    pub needs: Option<String>,
}

/// Names that stand for data: what they would give is known, and nothing is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// An empty dictionary, of which the pickle then sets the items.
    Dictionary,
    /// The list that is its only argument: how PyTorch's writer in C++ marks a list of numbers, and Python a set before
    /// protocol 4.
    Same,
}

const KNOWN: &[(&str, &str, Known)] = &[
    ("collections", "OrderedDict", Known::Dictionary),
    ("__builtin__", "set", Known::Same),
    ("builtins", "set", Known::Same),
    ("torch.jit._pickle", "build_intlist", Known::Same),
    ("torch.jit._pickle", "build_doublelist", Known::Same),
    ("torch.jit._pickle", "build_boollist", Known::Same),
];

/// What stands on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Object(u32),
    Known(Known),
}

/// Whether bytes begin like a pickle of protocol 2 or later.
pub fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

/// Reads a pickle.
///
/// # Errors
/// Where it is damaged, needs a class, or holds more objects than are allowed.
pub fn read(bytes: &[u8], allowance: &Allowance) -> Result<Objects, PickleError> {
    let mut machine = Machine {
        bytes,
        at: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: FxHashMap::default(),
        builder: Builder::new(allowance),
        needs: None,
    };
    loop {
        let offset = machine.at;
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => return Ok(Objects { all: machine.builder.all, root }),
            Err(message) => return Err(PickleError { offset, message, needs: machine.needs }),
        }
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Slot>,
    /// For each open mark the height of the stack below it.
    marks: Vec<usize>,
    memo: FxHashMap<u32, Slot>,
    builder: Builder<'a>,
    needs: Option<String>,
}

impl<'a> Machine<'a> {
    /// The next bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let left = self.bytes.len() - self.at;
        if count > left {
            return Err(format!("the file ends {} bytes too early", count - left));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// A number of 1 to 8 bytes, the lowest first, without a sign.
    fn number(&mut self, width: usize) -> Result<u64, String> {
        Ok(self.take(width)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// As many bytes as a number of this width says.
    fn counted(&mut self, width: usize) -> Result<&'a [u8], String> {
        let count = self.number(width)?;
        // A length of another machine's size is longer than what is left in any case.
        self.take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = memchr::memchr(b'\n', &self.bytes[self.at..]).ok_or("the file ends within a name")?;
        let line = self.take(end + 1)?;
        std::str::from_utf8(&line[..end]).map_err(|_| "a name that is not UTF-8".to_string())
    }

    fn push(&mut self, slot: Slot) -> Result<(), String> {
        self.builder.allowance.take(1)?;
        self.stack.push(slot);
        Ok(())
    }

    fn push_new(&mut self, object: Object) -> Result<(), String> {
        let id = self.builder.add(object)?;
        self.push(Slot::Object(id))
    }

    fn pop(&mut self) -> Result<Slot, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err("takes from the stack what is not there".to_string());
        }
        self.stack.pop().ok_or_else(|| "takes from an empty stack".to_string())
    }

    fn pop_object(&mut self) -> Result<u32, String> {
        match self.pop()? {
            Slot::Object(id) => Ok(id),
            Slot::Known(_) => Err("uses a class as if it were data".to_string()),
        }
    }

    /// All objects above the last mark, which is taken away.
    fn above_mark(&mut self) -> Result<Vec<u32>, String> {
        let mark = self.marks.pop().ok_or("collects up to a mark that is not there")?;
        let slots = self.stack.get(mark..).unwrap_or_default().iter();
        let objects = slots.map(|slot| match slot {
            Slot::Object(id) => Ok(*id),
            Slot::Known(_) => Err("uses a class as if it were data".to_string()),
        });
        let objects = objects.collect::<Result<Vec<u32>, String>>()?;
        self.stack.truncate(mark);
        Ok(objects)
    }

    fn pairs(flat: &[u32]) -> Result<Vec<(u32, u32)>, String> {
        match flat.len() % 2 {
            0 => Ok(flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
            _ => Err("a key of a dictionary has no value".to_string()),
        }
    }

    /// The object below what was taken, which stays.
    fn top(&mut self) -> Result<&mut Object, String> {
        let slot = self.pop()?;
        self.stack.push(slot);
        match slot {
            Slot::Object(id) => self.builder.all.get_mut(id as usize).ok_or_else(|| "no object".to_string()),
            Slot::Known(_) => Err("adds items to a class".to_string()),
        }
    }

    fn append(&mut self, items: Vec<u32>) -> Result<(), String> {
        match self.top()? {
            Object::List(list) => list.extend(items),
            _ => return Err("appends to what is no list".to_string()),
        }
        Ok(())
    }

    fn set_items(&mut self, pairs: Vec<(u32, u32)>) -> Result<(), String> {
        match self.top()? {
            Object::Dictionary(known) => known.extend(pairs),
            _ => return Err("sets items of what is no dictionary".to_string()),
        }
        Ok(())
    }

    fn remember(&mut self, index: u64) -> Result<(), String> {
        let slot = *self.stack.last().ok_or("remembers the top of an empty stack")?;
        let index = u32::try_from(index).map_err(|_| "remembers too many objects")?;
        self.builder.allowance.take(1)?;
        self.memo.insert(index, slot);
        Ok(())
    }

    fn recall(&mut self, index: u64) -> Result<(), String> {
        let known = u32::try_from(index).ok().and_then(|index| self.memo.get(&index)).copied();
        self.push(known.ok_or_else(|| format!("recalls object {index}, which was not remembered"))?)
    }

    fn push_text(&mut self, bytes: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")?;
        self.push_new(Object::Text(text.into()))
    }

    /// A whole number of any width, the lowest byte first, with a sign.
    fn push_long(&mut self, bytes: &[u8]) -> Result<(), String> {
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let filler = if negative { 0xff } else { 0 };
        let mut low = [filler; 8];
        for (to, &from) in low.iter_mut().zip(bytes) {
            *to = from;
        }
        let value = i64::from_le_bytes(low);
        let fits = bytes.iter().skip(8).all(|&byte| byte == filler) && (value < 0) == negative;
        self.push_new(if fits { Object::Integer(value) } else { Object::Wide })
    }

    /// A class or function that the pickle names.
    fn name(&mut self, module: &str, name: &str) -> Result<(), String> {
        if let Some(known) = KNOWN.iter().find(|(m, n, _)| (*m, *n) == (module, name)) {
            return self.push(Slot::Known(known.2));
        }
        let shown = |text: &str| text.chars().take(200).collect::<String>();
        let needs = format!("{}.{}", shown(module), shown(name));
        let message = format!("needs {needs}, and nothing that a pickle names is looked up or called here");
        self.needs = Some(needs);
        Err(message)
    }

    /// A call of what is below the arguments.
    fn reduce(&mut self) -> Result<(), String> {
        let arguments = self.pop_object()?;
        let Slot::Known(known) = self.pop()? else {
            return Err("calls what is no function".to_string());
        };
        let Some(Object::List(arguments)) = self.builder.all.get(arguments as usize) else {
            return Err("calls a function with what is no tuple".to_string());
        };
        match (known, &arguments[..]) {
            (Known::Dictionary, []) => self.push_new(Object::Dictionary(Vec::new())),
            (Known::Same, &[list]) => self.push(Slot::Object(list)),
            _ => Err("calls a function with other arguments than it takes".to_string()),
        }
    }

    /// Executes one opcode; gives the root at the end.
    fn step(&mut self) -> Result<Option<u32>, String> {
        let [opcode] = *self.take(1)? else { return Err("the file ends".to_string()) };
        match opcode {
            0x80 => match self.number(1)? {
                0..=5 => {}
                other => return Err(format!("protocol {other} is not known; 2 to 5 are read")),
            },
            // A frame says only how much may be read at once.
            0x95 => {
                let length = self.number(8)?;
                if length > (self.bytes.len() - self.at) as u64 {
                    return Err(format!("the file ends within a frame of {length} bytes"));
                }
            }
            b'.' => {
                let root = self.pop_object()?;
                if self.at != self.bytes.len() {
                    return Err(format!("{} bytes follow the end of the pickle", self.bytes.len() - self.at));
                }
                return Ok(Some(root));
            }
            b'N' => self.push(Slot::Object(NONE))?,
            0x88 => self.push(Slot::Object(TRUE))?,
            0x89 => self.push(Slot::Object(FALSE))?,
            b'J' => {
                let number = self.number(4)? as u32 as i32;
                self.push_new(Object::Integer(i64::from(number)))?;
            }
            b'K' => {
                let number = self.number(1)?;
                self.push_new(Object::Integer(number as i64))?;
            }
            b'M' => {
                let number = self.number(2)?;
                self.push_new(Object::Integer(number as i64))?;
            }
            0x8a => {
                let bytes = self.counted(1)?;
                self.push_long(bytes)?;
            }
            0x8b => {
                let bytes = self.counted(4)?;
                self.push_long(bytes)?;
            }
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push_new(Object::Float(f64::from_bits(bits)))?;
            }
            0x8c => {
                let bytes = self.counted(1)?;
                self.push_text(bytes)?;
            }
            b'X' => {
                let bytes = self.counted(4)?;
                self.push_text(bytes)?;
            }
            0x8d => {
                let bytes = self.counted(8)?;
                self.push_text(bytes)?;
            }
            // Texts of Python 2.
            b'U' => {
                let bytes = self.counted(1)?;
                self.push_text(bytes)?;
            }
            b'T' => {
                let bytes = self.counted(4)?;
                self.push_text(bytes)?;
            }
            b'C' => self.push_bytes(1)?,
            b'B' => self.push_bytes(4)?,
            0x8e | 0x96 => self.push_bytes(8)?,
            b']' | b')' | 0x8f => self.push_new(Object::List(Vec::new()))?,
            b'}' => self.push_new(Object::Dictionary(Vec::new()))?,
            b'(' => {
                self.builder.allowance.take(1)?;
                self.marks.push(self.stack.len());
            }
            b'l' | b't' | 0x91 => {
                let items = self.above_mark()?;
                self.push_new(Object::List(items))?;
            }
            b'd' => {
                let pairs = Self::pairs(&self.above_mark()?)?;
                self.push_new(Object::Dictionary(pairs))?;
            }
            0x85..=0x87 => {
                let mut items = Vec::with_capacity(3);
                for _ in 0x85..=opcode {
                    items.push(self.pop_object()?);
                }
                items.reverse();
                self.push_new(Object::List(items))?;
            }
            b'a' => {
                let item = self.pop_object()?;
                self.append(vec![item])?;
            }
            b'e' | 0x90 => {
                let items = self.above_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop_object()?, self.pop_object()?);
                self.set_items(vec![(key, value)])?;
            }
            b'u' => {
                let pairs = Self::pairs(&self.above_mark()?)?;
                self.set_items(pairs)?;
            }
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.above_mark()?;
            }
            b'2' => {
                let slot = self.pop()?;
                self.stack.push(slot);
                self.push(slot)?;
            }
            b'q' => {
                let index = self.number(1)?;
                self.remember(index)?;
            }
            b'r' => {
                let index = self.number(4)?;
                self.remember(index)?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'h' => {
                let index = self.number(1)?;
                self.recall(index)?;
            }
            b'j' => {
                let index = self.number(4)?;
                self.recall(index)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.name(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop_object()?, self.pop_object()?);
                let text = |id: u32| match self.builder.all.get(id as usize) {
                    Some(Object::Text(text)) => Ok(text.to_string()),
                    _ => Err("names a class by what is no text".to_string()),
                };
                let (module, name) = (text(module)?, text(name)?);
                self.name(&module, &name)?;
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                self.name(module, name)?;
                return Err("makes an instance of a class".to_string());
            }
            b'R' => self.reduce()?,
            b'b' | 0x81 | 0x92 | b'o' => return Err("makes an instance of a class".to_string()),
            b'P' | b'Q' => {
                self.needs = Some("persistent objects".to_string());
                return Err(
                    "refers to an object outside of the pickle, as torch.save does for tensors".to_string()
                );
            }
            0x82..=0x84 => return Err("names a class by a number that only its writer knows".to_string()),
            0x97 | 0x98 => return Err("refers to bytes outside of the file".to_string()),
            b'I' | b'L' | b'F' | b'S' | b'V' | b'p' | b'g' => {
                let opcode = char::from(opcode);
                return Err(format!("opcode {opcode:?} of protocol 0; protocols 2 to 5 are read"));
            }
            other => return Err(format!("0x{other:02x} is no opcode of a pickle")),
        }
        Ok(None)
    }

    fn push_bytes(&mut self, width: usize) -> Result<(), String> {
        self.counted(width)?;
        self.push_new(Object::Bytes)
    }
}

#[cfg(test)]
mod tests;
