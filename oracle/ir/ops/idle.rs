//! Arguments that make no difference where they stand.
//!
//! An operator that is not computed is a function of all its arguments, and another argument makes another function of
//! it. Some arguments say only what holds anyway: what the default says, where dimensions of one element are kept, how
//! far apart the elements of a window of one are. They are told by the names that PyTorch's schemas give to parameters,
//! and by the sizes that are recorded of the inputs; where a size is not known, an argument counts.

use super::schema::{Bound, Default, Param};
use crate::graph::{Dtype, NodeId, Value};

/// How the names of batch norms end that learn nothing.
const UNTRAINED: &str = "_no_training";

impl Bound<'_> {
    /// Whether the value given for parameter `index` says something of the elements of a result that does not hold
    /// without it.
    pub fn says(&self, index: usize, value: Value) -> bool {
        let is_idle = |param: &Param| !param.is_stated(self.graph, value) || self.is_idle(param, value);
        !self.schema.params.get(index).is_some_and(is_idle)
    }

    fn is_idle(&self, param: &Param, value: Value) -> bool {
        match param.name.as_str() {
            // How much a batch counts for the statistics that are kept, if any are, and it counts for them.
            "momentum" if self.schema.name.contains("norm") => {
                let trains = self.bool("training").or(self.bool("train")).or(self.bool("use_input_stats"));
                trains == Some(false)
                    || self.node("running_mean").is_none()
                    || self.schema.name.ends_with(UNTRAINED)
            }
            "stride" => self.steps_by_windows(param, value),
            // Of a convolution it may choose the algorithm, and so the bits.
            "dilation" if self.schema.param("weight").is_none() => {
                self.ints("kernel_size").is_some_and(|sizes| sizes.iter().all(|&n| n == 1))
            }
            "ceil_mode" => self.rounds_alike() == Some(true),
            "count_include_pad" => {
                let is_whole = self.bool("ceil_mode") == Some(false) || self.rounds_alike() == Some(true);
                is_whole && self.ints("padding").is_some_and(|padding| padding.iter().all(|&n| n == 0))
            }
            "output_padding" => self.bool("transposed") == Some(false),
            // The sum of the counts, so that it need not be computed.
            "output_size" => self.schema.name == "repeat_interleave",
            "scales" | "scales_w" => self.is_ratio(1, value),
            "scales_h" => self.is_ratio(2, value),
            "scales_d" => self.is_ratio(3, value),
            _ => false,
        }
    }

    /// Whether a stride says that a window begins where the last one ends, which pooling does where nothing is said.
    fn steps_by_windows(&self, param: &Param, value: Value) -> bool {
        let may_be_left_out = match &param.default {
            None => true,
            Some(default) => *default == Default::Ints(Vec::new()),
        };
        let Some(window) = self.named("kernel_size").filter(|_| may_be_left_out) else { return false };
        if let (Some(steps), Some(sizes)) = (self.ints("stride"), self.ints("kernel_size")) {
            let longest = steps.len().max(sizes.len());
            let spread = |ints: Vec<i64>| if ints.len() == 1 { vec![ints[0]; longest] } else { ints };
            return steps.is_empty() || spread(steps) == spread(sizes);
        }
        match (value, window) {
            (Value::List(steps), Value::List(sizes)) => self.graph.values(steps) == self.graph.values(sizes),
            _ => false,
        }
    }

    /// Whether as many windows of a pooling fit by rounding up as by rounding down, in each dimension
    /// (`pooling_output_shape_pad_lr` in `aten/src/ATen/native/Pool.h`).
    fn rounds_alike(&self) -> Option<bool> {
        let at = self.schema.param("kernel_size")?;
        let dims: usize =
            self.schema.params.get(at)?.ty.strip_prefix("int[")?.strip_suffix(']')?.parse().ok()?;
        let each = |name: &str, otherwise: i64| -> Option<Vec<i64>> {
            let given = match self.schema.param(name) {
                Some(_) => self.ints(name)?,
                None => Vec::new(),
            };
            match given[..] {
                [] => Some(vec![otherwise; dims]),
                [one] => Some(vec![one; dims]),
                _ => (given.len() == dims).then_some(given),
            }
        };
        let (windows, padding, dilation) =
            (each("kernel_size", 1)?, each("padding", 0)?, each("dilation", 1)?);
        let strides = if self.ints("stride")?.is_empty() { windows.clone() } else { each("stride", 1)? };
        let sizes = self.sizes(self.node("self").or(self.node("input"))?)?;
        let sizes = &sizes[sizes.len().checked_sub(dims)?..];
        let mut all = true;
        for (dim, &size) in sizes.iter().enumerate() {
            let reach = windows[dim].checked_sub(1)?.checked_mul(dilation[dim])?.checked_add(1)?;
            let padded = padding[dim].checked_mul(2)?.checked_add(size)?;
            let room = padded.checked_sub(reach)?;
            let more = room.checked_rem_euclid(strides[dim])? > 0;
            // A window that would begin behind the input and the padding before it is left out.
            let begins = room.checked_div_euclid(strides[dim])?.checked_add(1)?.checked_mul(strides[dim])?;
            all &= !more || begins >= padding[dim].checked_add(size)?;
        }
        Some(all)
    }

    /// Whether a factor of upsampling is the ratio of the sizes, which it is where nothing is said, or is not looked at.
    /// `from_last` counts dimensions, from 1.
    fn is_ratio(&self, from_last: usize, value: Value) -> bool {
        if self.bool("align_corners") == Some(true) {
            return true;
        }
        let sizes = match self.schema.param("input_size") {
            Some(_) => self.ints("input_size"),
            None => self.node("self").or(self.node("input")).and_then(|node| self.sizes(node)),
        };
        let last = |sizes: Vec<i64>| sizes.len().checked_sub(from_last).map(|at| sizes[at]);
        let (Some(size), Some(made)) = (sizes.and_then(last), self.ints("output_size").and_then(last)) else {
            return false;
        };
        let factor = match value {
            Value::Float(factor) => factor,
            Value::Int(factor) => factor as f64,
            _ => return false,
        };
        // In doubles, or for these elements in floats (`compute_scales_value` in `aten/src/ATen/native/UpSample.h`).
        let inverse = 1.0 / factor;
        let of_result = self.graph.tensor_of(self.node).map(|tensor| tensor.dtype);
        let in_floats = matches!(of_result, Some(Dtype::F32 | Dtype::F16 | Dtype::BF16));
        let is_same = inverse as f32 == size as f32 / made as f32;
        factor > 0.0 && is_same && (in_floats || inverse == size as f64 / made as f64)
    }

    /// The sizes that are recorded of a node.
    fn sizes(&self, node: NodeId) -> Option<Vec<i64>> {
        let tensor = (node.index() < self.graph.len()).then(|| self.graph.tensor_of(node)).flatten()?;
        self.graph.sizes(tensor.shape)
    }
}
