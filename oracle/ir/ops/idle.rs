//! Arguments that make no difference where they stand.
//!
//! An operator that is not computed is a function of all its arguments, and another argument makes another function of
//! it. Some arguments say only what holds anyway: what the default says, where dimensions of one element are kept, how
//! far apart the elements of a window of one are. They are told by the names that PyTorch's schemas give to parameters,
//! and by the sizes that are recorded of the inputs; where a size is not known, an argument counts.

use super::schema::{Bound, Default, Param};
use crate::graph::{Dtype, Value};

impl Bound<'_> {
    /// Whether the value given for parameter `index` says something of the elements of a result that does not hold
    /// without it.
    pub fn says(&self, index: usize, value: Value) -> bool {
        let is_idle =
            |param: &Param| param.is_out() || param.is_default(self.graph, value) || self.is_idle(param);
        !self.schema.params.get(index).is_some_and(is_idle)
    }

    fn is_idle(&self, param: &Param) -> bool {
        match param.name.as_str() {
            // Whether dimensions that are gone are kept with one element, and which results are asked for.
            "keepdim" => param.ty == "bool",
            "output_mask" => matches!(param.ty.as_str(), "bool[2]" | "bool[3]"),
            // How much a batch counts for the statistics that are kept, if any are, and it counts for them.
            "momentum" if self.schema.name.contains("norm") => {
                self.trains() == Some(false)
                    || self.node("running_mean").is_none()
                    || self.schema.name.ends_with("_no_training")
            }
            "stride" => self.steps_by_windows(param),
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
            "scales" | "scales_w" => self.is_ratio(param, 1),
            "scales_h" => self.is_ratio(param, 2),
            "scales_d" => self.is_ratio(param, 3),
            _ => false,
        }
    }

    /// Whether a stride says that a window begins where the last one ends, which pooling does where nothing is said.
    fn steps_by_windows(&self, param: &Param) -> bool {
        let may_be_left_out = param.default.as_ref().is_none_or(|d| *d == Default::Ints(Vec::new()));
        if !may_be_left_out || self.named("kernel_size").is_none() {
            return false;
        }
        match (self.ints("stride"), self.ints("kernel_size")) {
            (Some(steps), Some(sizes)) => {
                let dims = steps.len().max(sizes.len());
                steps.is_empty() || for_each(steps, dims) == for_each(sizes, dims)
            }
            _ => self.list("stride").is_some_and(|steps| Some(steps) == self.list("kernel_size")),
        }
    }

    /// Whether as many windows of a pooling fit by rounding up as by rounding down, in each dimension
    /// (`pooling_output_shape_pad_lr` in `aten/src/ATen/native/Pool.h`).
    fn rounds_alike(&self) -> Option<bool> {
        let at = self.schema.param("kernel_size")?;
        let dims: usize =
            self.schema.params.get(at)?.ty.strip_prefix("int[")?.strip_suffix(']')?.parse().ok()?;
        // Before anything is made of so many dimensions, which a file may say.
        let sizes = self.sizes_of_input()?;
        let sizes = &sizes[sizes.len().checked_sub(dims)?..];
        let each = |name: &str, otherwise: i64| -> Option<Vec<i64>> {
            let given = match self.schema.param(name) {
                Some(_) => self.ints(name)?,
                None => Vec::new(),
            };
            let given = for_each(if given.is_empty() { vec![otherwise] } else { given }, dims);
            (given.len() == dims).then_some(given)
        };
        let (windows, padding, dilation) =
            (each("kernel_size", 1)?, each("padding", 0)?, each("dilation", 1)?);
        let strides = if self.ints("stride")?.is_empty() { windows.clone() } else { each("stride", 1)? };
        for (dim, &size) in sizes.iter().enumerate() {
            let reach = windows[dim].checked_sub(1)?.checked_mul(dilation[dim])?.checked_add(1)?;
            let padded = padding[dim].checked_mul(2)?.checked_add(size)?;
            let room = padded.checked_sub(reach)?;
            // A window that would begin behind the input and the padding before it is left out.
            let begins = room.checked_div_euclid(strides[dim])?.checked_add(1)?.checked_mul(strides[dim])?;
            if room % strides[dim] != 0 && begins < padding[dim].checked_add(size)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether a factor of upsampling is the ratio of the sizes, which it is where nothing is said, or is not looked at.
    /// `from_last` counts dimensions, from 1.
    fn is_ratio(&self, param: &Param, from_last: usize) -> bool {
        if self.bool("align_corners") == Some(true) {
            return true;
        }
        let sizes = match self.schema.param("input_size") {
            Some(_) => self.ints("input_size"),
            None => self.sizes_of_input(),
        };
        let last = |sizes: Vec<i64>| sizes.len().checked_sub(from_last).map(|at| sizes[at]);
        let (size, made) = (sizes.and_then(last), self.ints("output_size").and_then(last));
        let (Some(size), Some(made), Some(factor)) = (size, made, self.float(&param.name)) else {
            return false;
        };
        // In doubles, or for these elements in floats (`compute_scales_value` in `aten/src/ATen/native/UpSample.h`).
        let inverse = 1.0 / factor;
        let of_result = self.graph.tensor_of(self.node).map(|tensor| tensor.dtype);
        let in_floats = matches!(of_result, Some(Dtype::F32 | Dtype::F16 | Dtype::BF16));
        let is_same = inverse as f32 == size as f32 / made as f32;
        factor > 0.0 && is_same && (in_floats || inverse == size as f64 / made as f64)
    }

    /// The sizes that are recorded of the input.
    fn sizes_of_input(&self) -> Option<Vec<i64>> {
        let node = self.node("self").or(self.node("input")).filter(|node| node.index() < self.graph.len())?;
        self.graph.sizes(self.graph.tensor_of(node)?.shape)
    }
}

/// Numbers for each of some dimensions, where one may stand for all.
fn for_each(ints: Vec<i64>, dims: usize) -> Vec<i64> {
    if let [one] = ints[..] { vec![one; dims] } else { ints }
}
