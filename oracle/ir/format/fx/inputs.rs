//! Inputs: what the text, a runnable and another text of the same compilation say of them.

use super::annotation::{Annotation, dim};
use super::build::Builder;
use super::layout::{row_major, text_of, twin};
use super::module::{Class, Input};
use super::runnable::{Given, GivenTensor};
use super::{DEVICE, FxError};
use crate::graph::{Dim, Dtype, Node, NodeId, Op, Out, StorageId, Tensor};

/// How an error ends that says that a runnable was written for another graph.
pub(super) const OF_ANOTHER: &str = ": it is not of this graph";

impl<'t> Builder<'t, '_> {
    pub(super) fn inputs(&mut self, class: &Class<'t>) -> Result<(), FxError> {
        for input in &class.inputs {
            self.at = input.at;
            let (name, target) = (self.graph.intern(input.name), self.graph.intern_target(input.target));
            let desc = input.descriptor.map(|text| self.graph.intern(text));
            let node = Node { desc, ..Node::new(name, Op::Placeholder, target) };
            let id = self.push(node, input.annotation.as_deref())?;
            let given = self.runnable.and_then(|runnable| runnable.input(input.name));
            let out = match (self.annotations[id.index()].clone(), given) {
                (Some(Annotation::Other(out)), _) => out,
                (Some(Annotation::Tensor { dtype, shape, stride, device }), given) => {
                    let text = self.text_tensor(id, dtype, shape, stride, device)?;
                    match given {
                        Some(Given::Tensor(given)) => self.completed(input, text, given)?,
                        _ => self.tensor(text),
                    }
                }
                (None, Some(Given::Tensor(given))) => {
                    let given = self.given_tensor(id, given)?;
                    self.tensor(given)
                }
                (None, Some(Given::Number(hint, expr))) => self.number(*hint, expr.as_deref()),
                // A device mesh, a generator: nothing is printed of it.
                (None, Some(Given::Object) | None) => Out::Other(self.graph.intern("object")),
            };
            self.graph.node_mut(id).out = out;
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: Tensor) -> Out {
        Out::Tensor(self.graph.push_tensor(tensor))
    }

    /// What the text says of a tensor, or another text of the compilation.
    fn text_tensor(
        &mut self,
        id: NodeId,
        dtype: Dtype,
        shape: Vec<Dim>,
        stride: Option<Vec<Dim>>,
        device: Option<String>,
    ) -> Result<Tensor, FxError> {
        let twin = match (&stride, &self.known.like) {
            (None, Some(like)) => twin(&mut self.graph, &self.hints, like, id, dtype, &shape),
            _ => None,
        };
        let (twin_stride, twin_device) = twin.unzip();
        let given = self.runnable.and_then(|runnable| runnable.input(self.graph.name(id)));
        let has_given = matches!(given, Some(Given::Tensor(_)));
        let stride = match stride.or(twin_stride) {
            Some(stride) => stride,
            None => {
                self.guessed.extend((!has_given && shape.len() > 1).then_some(id));
                self.row_major(&shape)?
            }
        };
        let device = device.or(twin_device).unwrap_or_else(|| DEVICE.to_string());
        Ok(Tensor {
            shape: self.graph.intern_dims(&shape),
            stride: self.graph.intern_dims(&stride),
            dtype,
            requires_grad: None,
            device: self.graph.intern(&device),
            storage: None,
            offset: 0,
            storage_bytes: None,
            is_guessed: false,
        })
    }

    fn row_major(&mut self, shape: &[Dim]) -> Result<Vec<Dim>, FxError> {
        let strides = row_major(&mut self.graph, &self.hints, shape);
        strides.ok_or_else(|| self.error("a tensor of more dimensions than PyTorch has"))
    }

    /// What a runnable says of a tensor.
    fn given_tensor(&mut self, id: NodeId, given: &GivenTensor) -> Result<Tensor, FxError> {
        let dims = |this: &mut Self, texts: &[String]| -> Vec<Dim> {
            texts.iter().map(|text| dim(&mut this.graph, &this.hints, text)).collect()
        };
        let shape = dims(self, &given.shape);
        let stride = match &given.stride {
            Some(stride) => dims(self, stride),
            None => self.row_major(&shape)?,
        };
        let bytes = dim(&mut self.graph, &self.hints, &given.storage_bytes);
        // Where it begins is a number to us. Without it nothing can be said of what it shares.
        let offset = dim(&mut self.graph, &self.hints, &given.offset).known().filter(|&offset| offset >= 0);
        if offset.is_none() {
            self.unplaced.push(id);
        }
        Ok(Tensor {
            shape: self.graph.intern_dims(&shape),
            stride: self.graph.intern_dims(&stride),
            dtype: given.dtype,
            requires_grad: given.requires_grad,
            device: self.graph.intern(&given.device),
            storage: offset.map(|_| StorageId(given.storage)),
            offset: offset.unwrap_or(0),
            storage_bytes: offset.map(|_| bytes),
            is_guessed: false,
        })
    }

    /// A tensor of the text with what only a runnable says of it.
    fn completed(&mut self, input: &Input<'t>, text: Tensor, given: &GivenTensor) -> Result<Out, FxError> {
        let id = self.graph.ids().next_back().unwrap_or(NodeId(0));
        let given = self.given_tensor(id, given)?;
        let sizes = |tensor: &Tensor| self.graph.dims(tensor.shape);
        let differ = |(a, b): (&Dim, &Dim)| a.known().zip(b.known()).is_some_and(|(a, b)| a != b);
        let (printed, made) = (sizes(&text), sizes(&given));
        // Expressions have many spellings, and older runnables have the numbers of a run in their places.
        if text.dtype != given.dtype || printed.len() != made.len() || printed.iter().zip(made).any(differ) {
            let name = input.name;
            let message = format!("the runnable has another dtype or other sizes of {name}{OF_ANOTHER}");
            return Err(self.error(message));
        }
        let is_same = text_of(&self.graph, printed) == text_of(&self.graph, made);
        let is_printed =
            matches!(self.annotations[id.index()], Some(Annotation::Tensor { stride: Some(_), .. }));
        let stride = if is_printed || !is_same { text.stride } else { given.stride };
        self.guessed.extend((!is_printed && !is_same).then_some(id));
        // A device that is not printed is taken to be the CPU.
        let has_device =
            matches!(self.annotations[id.index()], Some(Annotation::Tensor { device: Some(_), .. }));
        let device = if has_device { text.device } else { given.device };
        Ok(self.tensor(Tensor { shape: text.shape, stride, device, ..given }))
    }

    /// A number that is given.
    fn number(&mut self, hint: Option<i64>, expr: Option<&str>) -> Out {
        match (expr, hint) {
            (Some(expr), _) => match dim(&mut self.graph, &self.hints, expr) {
                Dim::Static(number) => Out::Int(number),
                Dim::Symbolic(expr) => Out::SymInt(expr),
            },
            (None, Some(number)) => {
                self.has_fixed_numbers = true;
                Out::Int(number)
            }
            (None, None) => Out::Other(self.graph.intern("object")),
        }
    }
}
