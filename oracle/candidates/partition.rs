//! Mutants of the partitioners: the reference with one ingredient replaced, from outside.
//!
//! Most replace a method of [`Policy`] and cut as the reference does. Some decide differently on one rank, or in the
//! second of two equal layers, or lose tags on the way to the second partition; `Way` says which. What a mutant of
//! the second kind does wrong is not seen in one triple, so [`PartitionMutant::judge`] gathers what is: the parts on the
//! other rank, the bytes under other budgets, the choice in the other layer.
//!
//! Sources: K10 to K17, K21, K23, K27 and K32 of the bug benchmark.

use super::{Candidate, Capabilities, Outcome, Refusal};
use crate::case::PassConfig;
use crate::graph::{Graph, NodeId, Tags, Value};
use crate::judge::partition::judge_partition_with;
use crate::judge::{CannotJudge, Judgement, Options};
use crate::passes::partition::activation_checkpointing::{Stage, checkpoint_with};
use crate::passes::partition::classes::{Classes, FAR};
use crate::passes::partition::common_subexpressions::{self, Distinct, Key};
use crate::passes::partition::fsdp::{self, REGION, mark_with};
use crate::passes::partition::joint::{Role, Sort};
use crate::passes::partition::knapsack;
use crate::passes::partition::marks::{Placement, Recompute, retag};
use crate::passes::partition::max_flow::CutSide;
use crate::passes::partition::min_cut::budget::Choice;
use crate::passes::partition::min_cut::context::{Weight, weight};
use crate::passes::partition::min_cut::{Ban, Context};
use crate::passes::partition::modules::Saved;
use crate::passes::partition::replay::{Decision, decide};
use crate::passes::partition::{
    self, Joint, Method, Partition, PartitionConfig as Config, PartitionError, Policy, Reference, Solver,
};
use crate::rules::PassKind;
use crate::rules::partition::{
    Further, JUDGE_OPTIONS, PartitionConfig, PartitionEvidence, compose, saved_bytes,
};
use fixedbitset::FixedBitSet;

/// A mutant of the partitioners.
pub struct PartitionMutant {
    /// Its name.
    pub name: &'static str,
    /// What it gets wrong.
    pub about: &'static str,
    /// The reports that it is derived from; a bare number is of pytorch/pytorch.
    pub origin: &'static str,
    /// The rules of which one must convict it.
    pub convicted_by: &'static [&'static str],
    policy: &'static (dyn Policy + Sync),
    way: Way,
}

/// Where the policy of a mutant acts, and with what it is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// In the partitioner, on every rank; one triple tells.
    Cut,
    /// In the partitioner, on every rank but the first; the parts of both are compared.
    Ranks,
    /// In the partitioner; several budgets are compared.
    Budgets,
    /// In the pass that tags gathers of parameters: what it does not reach loses its tag.
    Marked,
    /// Where tags are carried to the second joint graph.
    Carried,
    /// In the pass for activation checkpointing, from the second layer on; two layers are compared.
    Layers,
}

/// The minimum cut closest to the source.
struct SourceSide;
impl Policy for SourceSide {
    fn cut_side(&self) -> CutSide {
        CutSide::Source
    }
}

/// A tenth more for every other value, as a measurement on another machine may say.
struct NoisyWeight;
impl Policy for NoisyWeight {
    fn weight(&self, cx: &Context, id: NodeId) -> Result<Weight, PartitionError> {
        Ok(match weight(cx, id)? {
            Weight::Finite(weight) if id.index().is_multiple_of(2) => {
                Weight::Finite(weight.saturating_add(weight / 10))
            }
            other => other,
        })
    }
}

/// A rank with half the memory.
struct HalfBudget;
impl Policy for HalfBudget {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        knapsack::solve(solver, memories, runtimes, budget / 2.0)
    }
}

/// Without memory the inputs, whatever cannot be repeated.
struct InputsOnly;
impl Policy for InputsOnly {
    fn without_memory(&self, cx: &Context) -> Result<Option<Choice>, PartitionError> {
        Ok(Some(Choice { saved: cx.classes.inputs.clone(), certificate: None }))
    }
}

/// The budget takes back bans of draws.
struct UnbansDraws;
impl Policy for UnbansDraws {
    fn may_unban(&self, cx: &Context, id: NodeId) -> bool {
        cx.distance(id) < FAR && !cx.joint.target(id).collective && !cx.joint.tags(id).must_save()
    }
}

/// Draws are like any other operator.
struct RepeatsDraws;
impl Policy for RepeatsDraws {
    fn unrepeatable(&self, joint: &Joint, id: NodeId) -> Option<Ban> {
        partition::hazards::unrepeatable(joint, id).filter(|ban| *ban != Ban::Draw)
    }
}

/// The second draw starts from where the generator stands.
struct UnpairedDraws;
impl Policy for UnpairedDraws {
    fn pairs_draws(&self) -> bool {
        false
    }
}

/// Writes of forward do not matter.
struct IgnoresWrites;
impl Policy for IgnoresWrites {
    fn minds_overwriting(&self) -> bool {
        false
    }
}

/// A write belongs where its operands are.
struct WritesByOperands;
impl WritesByOperands {
    fn has_forward_operands(joint: &Joint, id: NodeId) -> bool {
        let forward = |&input: &NodeId| match joint.role(input) {
            Role::Call => matches!(joint.tags(input).placement, Placement::Forward | Placement::Untagged),
            role => role != Role::Tangent,
        };
        joint.target(id).mutable
            && joint.tags(id).placement == Placement::Backward
            && joint.edges.inputs(id).iter().all(forward)
    }
}
impl Policy for WritesByOperands {
    fn must_be_forward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_forward(id) || WritesByOperands::has_forward_operands(joint, id)
    }

    fn must_be_backward(&self, joint: &Joint, id: NodeId) -> bool {
        joint.must_be_backward(id) && !WritesByOperands::has_forward_operands(joint, id)
    }
}

/// What no tangent leads to is lost from backward's order.
struct TangentsOnly;
impl Policy for TangentsOnly {
    fn hoists(&self, _: &Joint, _: NodeId) -> bool {
        false
    }
}

/// Without memory the inputs and what is tagged, tuples among it.
struct InputsAndTagged;
impl Policy for InputsAndTagged {
    fn without_memory(&self, cx: &Context) -> Result<Option<Choice>, PartitionError> {
        let tagged = cx.classes.in_order.iter().filter(|id| cx.joint.tags(**id).must_save());
        let saved = cx.classes.inputs.iter().chain(tagged).copied().collect();
        Ok(Some(Choice { saved, certificate: None }))
    }
}

/// The budget takes back bans of what must be saved.
struct UnbansTagged;
impl Policy for UnbansTagged {
    fn may_unban(&self, cx: &Context, id: NodeId) -> bool {
        let protected = cx.joint.target(id).collective && !cx.config.optimizes_collectives;
        cx.distance(id) < FAR
            && !protected
            && cx.hazards.unrepeatable(id).is_none_or(|ban| ban == Ban::MustSave)
    }
}

/// What is tagged is saved, whether or not backward reads it.
struct SavesTagged;
impl Policy for SavesTagged {
    fn adjust(&self, joint: &Joint, classes: &Classes, mut saved: Saved) -> Saved {
        let tagged = |id: &NodeId| {
            joint.tags(*id).must_save() && joint.sort(*id) == Sort::Tensor && joint.role(*id) == Role::Call
        };
        saved.values.extend(classes.in_order.iter().copied().filter(tagged));
        saved.deduplicate();
        saved
    }

    fn drops_unread(&self, joint: &Joint, id: NodeId) -> bool {
        !joint.tags(id).must_save()
    }
}

/// The tag of the first partition holds on what backward computes from forward values.
struct SavesBackward;
impl Policy for SavesBackward {
    fn replayed(&self, joint: &Joint, id: NodeId) -> Decision {
        match joint.tags(id).placement {
            Placement::Backward if joint.role(id) == Role::Call && joint.sort(id) == Sort::Tensor => {
                Decision::Save
            }
            _ => decide(joint, id),
        }
    }
}

/// The chain from the wait goes through slices only.
struct SlicesOnly;
impl Policy for SlicesOnly {
    fn derived(&self, joint: &Joint, id: NodeId) -> Option<NodeId> {
        fsdp::derived(joint, id).filter(|&next| joint.graph.target(next).starts_with("aten.slice"))
    }
}

/// There is no chain.
struct WaitOnly;
impl Policy for WaitOnly {
    fn derived(&self, _: &Joint, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// Annotations are lost.
struct LosesCustom;
impl Policy for LosesCustom {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { custom: None, ..tags.clone() }
    }
}

/// The tags of activation checkpointing are lost.
struct LosesRecompute;
impl Policy for LosesRecompute {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { recompute: None, ac_graph_id: None, ..tags.clone() }
    }
}

/// The tag of the side is lost.
struct LosesPlacement;
impl Policy for LosesPlacement {
    fn carried(&self, tags: &Tags) -> Tags {
        Tags { partitioner_tag: None, ..tags.clone() }
    }
}

/// The tags of merged copies are lost.
struct LosesMerged;
impl Policy for LosesMerged {
    fn joins_tags(&self, _: Method) -> bool {
        false
    }
}

/// Whatever is a call and has no effect is merged.
struct MergesReturned;
impl Policy for MergesReturned {
    fn mergeable(&self, joint: &Joint, _: &Distinct, id: NodeId) -> bool {
        joint.role(id) == Role::Call && !joint.impure(id, true)
    }
}

/// Draws are merged.
struct MergesDraws;
impl Policy for MergesDraws {
    fn mergeable(&self, joint: &Joint, _: &Distinct, id: NodeId) -> bool {
        joint.role(id) == Role::Call && !joint.impure(id, false)
    }
}

/// Numbers are recognised by their value, and values of arguments by a rule of the mutant.
fn loose_key(joint: &Joint, representative: &[NodeId], id: NodeId, word: impl Fn(Value) -> u64) -> Key {
    let graph = &joint.graph;
    let mut key = vec![u64::from(graph.node(id).target.0)];
    let node = graph.node(id);
    // Lists are opened as they come.
    let mut open: Vec<Value> =
        graph.values(node.args).iter().chain(graph.values(node.kwargs)).copied().rev().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::List(inner) | Value::Complex(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                key.push(u64::from(inner.len() as u32));
                open.extend(graph.values(inner).iter().rev());
            }
            Value::Node(input) => key.push(u64::from(representative[input.index()].0)),
            value => key.push(word(value)),
        }
    }
    key
}

/// An integer and a float of one value are one key.
struct NumbersByValue;
impl Policy for NumbersByValue {
    fn merge_key(&self, joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
        loose_key(joint, representative, id, |value| match value {
            Value::Int(value) => (value as f64).to_bits(),
            Value::Float(value) => value.to_bits(),
            Value::Bool(value) => f64::from(u8::from(value)).to_bits(),
            Value::Str(text) => u64::MAX - text.index() as u64,
            _ => 0,
        })
    }
}

/// Texts, the group of communication among them, are not part of the key.
struct AnyGroup;
impl Policy for AnyGroup {
    fn merge_key(&self, joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
        if !joint.target(id).collective {
            return common_subexpressions::key(joint, representative, id);
        }
        loose_key(joint, representative, id, |value| match value {
            Value::Int(value) => value as u64,
            _ => 0,
        })
    }
}

/// Each half of the items gets all of the budget.
struct SplitBudget;
impl Policy for SplitBudget {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        let middle = memories.len() / 2;
        let ((a, b), (c, d)) = (memories.split_at(middle), runtimes.split_at(middle));
        let mut kept = knapsack::solve(solver, a, c, budget)?;
        kept.extend(knapsack::solve(solver, b, d, budget)?);
        Ok(kept)
    }
}

/// An item counts twice if the one before it is large.
struct CountsTwice;
impl Policy for CountsTwice {
    fn keep_within(
        &self,
        solver: Solver,
        memories: &[f64],
        runtimes: &[f64],
        budget: f64,
    ) -> Result<Vec<bool>, PartitionError> {
        let before = std::iter::once(&0.0).chain(memories);
        let doubled: Vec<f64> = memories
            .iter()
            .zip(before)
            .map(
                |(memory, before)| if *before > 0.0 && *before <= budget { memory + before } else { *memory },
            )
            .collect();
        knapsack::solve(solver, &doubled, runtimes, budget)
    }
}

/// No node binds a symbol: each was replaced by its value.
struct BindsNothing;
impl Policy for BindsNothing {
    fn bound_symbol<'a>(&self, _: &'a Joint, _: NodeId) -> Option<&'a str> {
        None
    }
}

/// Backward returns what depends on a tangent.
struct TangentOutputs;
impl Policy for TangentOutputs {
    fn claims_output(&self, _: &Joint, closure: &FixedBitSet, id: NodeId) -> bool {
        closure.contains(id.index())
    }
}

/// The counter of products goes on from the layer before, which was this one.
struct CountsOn;
impl Policy for CountsOn {
    fn kept_products(&self, _: &Joint, products: &[NodeId]) -> Vec<NodeId> {
        products.iter().copied().skip(products.len() % 2).step_by(2).collect()
    }
}

const RANDOM: &[&str] =
    &["partition/rng-paired", "partition/semantics-equal", "partition/recompute-terms-equal"];
const WRITTEN: &[&str] = &[
    "partition/saved-alias-is-current",
    "partition/no-recompute-after-mutation",
    "partition/semantics-equal",
];
const EFFECTS: &[&str] = &["partition/effects-once-in-order", "partition/semantics-equal"];
const REPEATED: &[&str] = &["partition/no-saved-gather-exposed"];
const MERGED: &[&str] = &["partition/semantics-equal", "partition/outputs-preserved"];
const SPMD: &[&str] = &["comm/spmd-same-decision"];

/// A line of the table.
macro_rules! mutants {
    ($($name:literal, $about:literal, $origin:literal, $rules:expr, $policy:expr, $way:ident;)*) => {
        /// All of them.
        pub static PARTITION_MUTANTS: &[PartitionMutant] = &[$(PartitionMutant {
            name: $name, about: $about, origin: $origin, convicted_by: $rules, policy: &$policy, way: Way::$way,
        }),*];
    };
}

mutants! {
    "K10a", "takes the minimum cut on the other side on one rank", "#147561", SPMD, SourceSide, Ranks;
    "K10b", "weighs values by measurements of the rank", "#147561", SPMD, NoisyWeight, Ranks;
    "K10c", "has another budget on one rank", "#147561", SPMD, HalfBudget, Ranks;
    "K11a", "saves the inputs only under a budget of 0, and draws again", "#190758", RANDOM, InputsOnly, Cut;
    "K11b", "takes bans of draws back for the budget", "#190758", RANDOM, UnbansDraws, Cut;
    "K11c", "draws again like any other operator", "#190758", RANDOM, RepeatsDraws, Cut;
    "K11d", "draws again from another state", "#190758", RANDOM, UnpairedDraws, Cut;
    "K12", "saves or recomputes what forward has overwritten", "#197039", WRITTEN, IgnoresWrites, Cut;
    "K13a", "moves a write of backward to where its operands are", "#127561", EFFECTS, WritesByOperands, Cut;
    "K13b", "loses what backward does before the first tangent", "#155353", EFFECTS, TangentsOnly, Cut;
    "K14a", "saves the inputs and what is tagged, tuples too", "#188014",
        &["partition/saved-kinds", "partition/signature-match"], InputsAndTagged, Cut;
    "K14b", "takes bans of MUST_SAVE back for the budget", "#188014, #141684",
        &["partition/must-save-honoured"], UnbansTagged, Cut;
    "K15a", "saves what is tagged although backward does not read it", "#149652",
        &["partition/no-dead-saved"], SavesTagged, Cut;
    "K15b", "replays the tag on nodes of backward", "autoparallel#531",
        &["partition/replay-saves-match"], SavesBackward, Cut;
    "K16a", "repeats slices of a gathered parameter, no other views", "autoparallel#410, autoparallel#469",
        REPEATED, SlicesOnly, Marked;
    "K16b", "repeats a gather and its wait, no views", "autoparallel#469", REPEATED, WaitOnly, Marked;
    "K17a", "loses annotations when traced again", "autoparallel#531, torchtitan#3530",
        &["partition/replay-saves-match", "partition/replay-index-fidelity"], LosesCustom, Carried;
    "K17b", "loses recompute tags when traced again", "autoparallel#480, #177396",
        &["partition/no-saved-gather-exposed", "partition/must-save-honoured"], LosesRecompute, Carried;
    "K17c", "loses the side when traced again", "autoparallel#295", EFFECTS, LosesPlacement, Carried;
    "K17d", "loses the tags of merged copies", "autoparallel#480",
        &["partition/cse-tag-merge", "partition/replay-saves-match", "partition/replay-index-fidelity"],
        LosesMerged, Cut;
    "K21a", "merges what shares memory with an output or is written", "#188280", MERGED, MergesReturned, Cut;
    "K21b", "merges 1 and 1.0", "#119567", MERGED, NumbersByValue, Cut;
    "K21d", "merges communication of different groups", "thunder#2203", MERGED, AnyGroup, Cut;
    "K21e", "merges draws", "thunder#2203", &["partition/semantics-equal", "partition/rng-paired"],
        MergesDraws, Cut;
    "K23a", "gives all of the budget to each half", "#197871", &["partition/budget-respected"], SplitBudget,
        Budgets;
    "K23b", "counts the memory of a predecessor twice", "#196914", &["partition/budget-respected"], CountsTwice,
        Budgets;
    "K27a", "takes symbols as replaced, and binds none", "#185473",
        &["partition/symbols-bound", "partition/signature-match"], BindsNothing, Cut;
    "K27b", "leaves outputs without a tangent out of backward", "#96653",
        &["partition/total", "partition/outputs-preserved", "partition/bw-closed", "partition/semantics-equal"],
        TangentOutputs, Cut;
    "K32", "counts products over all layers", "torchtitan#3397", &["partition/metamorphic-stable"], CountsOn,
        Layers;
}

/// The mutants as candidates.
pub fn mutants() -> impl Iterator<Item = &'static PartitionMutant> {
    PARTITION_MUTANTS.iter()
}

/// Budgets that are compared.
const BUDGETS: [f64; 6] = [0.1, 0.25, 0.5, 0.6, 0.75, 0.9];

impl PartitionMutant {
    /// The mutant with this name.
    pub fn named(name: &str) -> Option<&'static PartitionMutant> {
        PARTITION_MUTANTS.iter().find(|mutant| mutant.name == name)
    }

    /// The parts that it makes of a joint graph, and the joint graph that they are to be judged by.
    fn cut(&self, joint: &Graph, config: &Config) -> Result<Partition, PartitionError> {
        cut(joint, config, self.way, self.policy)
    }

    /// Cuts a joint graph and judges the parts, with what else shows the defect.
    ///
    /// # Errors
    /// As [`judge_partition_with`]; and where neither it nor the reference gives parts.
    pub fn judge(
        &self,
        joint: &Graph,
        pass: &PassConfig,
        options: &Options,
    ) -> Result<Judgement, CannotJudge> {
        judge_by(joint, pass, options, self.way, self.policy)
    }
}

fn cut(joint: &Graph, config: &Config, way: Way, policy: &dyn Policy) -> Result<Partition, PartitionError> {
    match way {
        Way::Cut | Way::Ranks | Way::Budgets => partition::run_with(joint, config, policy),
        Way::Marked => partition::run(&marked(joint, policy)?, config),
        Way::Carried => partition::run(&carried(joint, policy), config),
        Way::Layers => partition::run(&checkpoint_with(joint, Stage::default(), policy)?, config),
    }
}

/// [`PartitionMutant::judge`] for any policy.
fn judge_by(
    joint: &Graph,
    pass: &PassConfig,
    options: &Options,
    way: Way,
    policy: &dyn Policy,
) -> Result<Judgement, CannotJudge> {
    let mut asked = partition_config(pass).map_err(CannotJudge::Pass)?;
    let mut config = PartitionConfig::from_pass(pass).map_err(CannotJudge::Pass)?.or_from_file(joint);
    let refusal = |error: PartitionError| CannotJudge::Pass(error.to_string());
    let reference = |asked: &Config| cut(joint, asked, way, &Reference).map_err(refusal);
    let mut further = Further::default();
    match way {
        Way::Cut | Way::Marked | Way::Carried => {
            let parts = match cut(joint, &asked, way, policy) {
                Ok(parts) => parts,
                Err(error) => {
                    further.refused = Some(error.to_string());
                    reference(&asked)?
                }
            };
            judge_partition_with(joint, &parts.forward, &parts.backward, &config, further, options)
        }
        Way::Ranks => {
            let first = reference(&asked)?;
            let other = cut(joint, &asked, way, policy).map_err(refusal)?;
            further.ranks.push((1, &other.forward, &other.backward));
            judge_partition_with(joint, &first.forward, &first.backward, &config, further, options)
        }
        Way::Budgets => {
            if config.method != crate::rules::partition::Method::MinCut {
                return Err(CannotJudge::Pass("only a minimum cut has a budget".into()));
            }
            let mut at = |budget: f64| -> Result<(Partition, i64), CannotJudge> {
                asked.budget = budget;
                let parts = cut(joint, &asked, way, policy).map_err(refusal)?;
                let bytes = bytes_of(joint, &parts, &config);
                Ok((parts, bytes.ok_or_else(|| CannotJudge::Pass("a size is not known".into()))?))
            };
            let (least, most) = (at(0.0)?.1, at(1.0)?.1);
            let mut middle = None;
            for budget in BUDGETS {
                let (parts, bytes) = at(budget)?;
                further.budgets.push((budget, bytes));
                if budget == 0.5 {
                    middle = Some(parts);
                }
            }
            let parts = middle.ok_or_else(|| CannotJudge::Pass("no budget was tried".into()))?;
            further.budget_range = Some((least, most));
            config.budget = Some(0.5);
            judge_partition_with(joint, &parts.forward, &parts.backward, &config, further, options)
        }
        Way::Layers => {
            let first = checkpoint_with(joint, Stage::default(), &Reference).map_err(refusal)?;
            let parts = partition::run(&first, &asked).map_err(refusal)?;
            let next = cut(joint, &asked, way, policy).map_err(refusal)?;
            let saved = saved_names(&next);
            further.variants.push(("the same layer, once more".into(), saved));
            judge_partition_with(&first, &parts.forward, &parts.backward, &config, further, options)
        }
    }
}

/// What forward hands over, by name.
fn saved_names(parts: &Partition) -> Vec<String> {
    let forward = &parts.forward;
    let Some(output) = forward.output() else { return Vec::new() };
    let flat = |&value: &Value| match value {
        Value::List(span) => forward.values(span).to_vec(),
        value => vec![value],
    };
    let returned = forward.args(output).iter().flat_map(flat).skip(parts.num_forward_outputs);
    let name = |value| match value {
        Value::Node(id) => Some(forward.name(id).to_string()),
        _ => None,
    };
    returned.filter_map(name).collect()
}

/// Saved bytes of distinct storages, inputs that live anyway left out.
fn bytes_of(joint: &Graph, parts: &Partition, config: &PartitionConfig) -> Option<i64> {
    let composition = compose(joint, &parts.forward, &parts.backward, config.forward_outputs?);
    let evidence =
        PartitionEvidence::new(joint, &parts.forward, &parts.backward, &composition, config.clone());
    saved_bytes(&evidence).map(|saved| saved.bytes)
}

/// The joint graph with tags of gathers taken away where the pass of the reference would set them and that of
/// `policy` would not.
fn marked(joint: &Graph, policy: &dyn Policy) -> Result<Graph, PartitionError> {
    let mut bare = joint.clone();
    let of_gathers = |id: &NodeId| {
        joint.tags(*id).is_some_and(|tags| tags.ac_graph_id == Some(REGION) && tags.recompute.is_some())
    };
    let tagged: Vec<NodeId> = joint.ids().filter(of_gathers).collect();
    let untag = |graph: &mut Graph, id: NodeId| {
        retag(graph, id, |_, tags| {
            tags.recompute = None;
            tags.ac_graph_id = None;
        })
    };
    tagged.iter().for_each(|&id| untag(&mut bare, id));
    let (whole, short) = (mark_with(&bare, true, &Reference)?, mark_with(&bare, true, policy)?);
    let is_set = |graph: &Graph, id: NodeId| {
        let tag = graph.tags(id).and_then(|tags| tags.recompute);
        tag.is_some_and(|tag| graph.text(tag) == Recompute::MustRecompute.name())
    };
    let mut graph = joint.clone();
    for id in tagged.into_iter().filter(|&id| is_set(&whole, id) && !is_set(&short, id)) {
        untag(&mut graph, id);
    }
    Ok(graph)
}

/// The joint graph with the tags that `policy` carries.
fn carried(joint: &Graph, policy: &dyn Policy) -> Graph {
    let mut graph = joint.clone();
    for id in joint.ids() {
        retag(&mut graph, id, |_, tags| *tags = policy.carried(tags));
    }
    graph
}

/// The partitioner's options of a pass; those for the judge are left out.
fn partition_config(pass: &PassConfig) -> Result<Config, String> {
    let mut pass = pass.clone();
    pass.options.retain(|(key, _)| !JUDGE_OPTIONS.contains(&key.as_str()));
    Config::from_pass(&pass)
}

impl Candidate for &'static PartitionMutant {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { passes: vec![PassKind::Partition], bakes_rank: false }
    }

    fn keeps_promises(&self) -> bool {
        true
    }

    fn check_options(&self, pass: &PassConfig) -> Result<(), String> {
        partition_config(pass).map(|_| ())
    }

    fn run(&self, _: &Graph, pass: &PassConfig, _: u32) -> Result<Outcome, Refusal> {
        Err(Refusal::new(format!("{} gives no single graph", pass.name)))
    }

    fn partition(&self, joint: &Graph, pass: &PassConfig) -> Result<(Graph, Graph), Refusal> {
        let config = partition_config(pass).map_err(Refusal::new)?;
        let parts = self.cut(joint, &config).map_err(|error| Refusal::new(error.to_string()))?;
        Ok((parts.forward, parts.backward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::print_graph;
    use crate::generate::joint;
    use crate::judge::Verdict;

    /// Graphs for mutants that the generated cases reach late or not at all, and why not.
    const WITNESSES: &[(&str, &str)] = &[
        // The generator writes at the end of backward.
        (
            "K13b",
            "pass partition method=min-cut num_fwd_outputs=1
            primals_1 = input : f32[4]
            primals_2 = input : f32[4]
            tangents_1 = input : f32[4]
            y = sin(primals_1) : f32[4] {partitioner_tag: is_forward}
            z = zero_(primals_2) : f32[4] {partitioner_tag: is_backward}
            c = cos(primals_1) : f32[4] {partitioner_tag: is_backward}
            g = mul(tangents_1, c) : f32[4] {partitioner_tag: is_backward}
            output (y, g, None)",
        ),
        // There, what is split twice is split for the same items.
        (
            "K17d",
            "pass partition method=replay num_fwd_outputs=1
            primals_1 = input : f32[4, 4]
            tangents_1 = input : f32[2, 4]
            x = sin(primals_1) : f32[4, 4] {partitioner_tag: is_forward}
            s = split(x, 2) : (f32[2, 4], f32[2, 4] offset 8) {partitioner_tag: is_forward}
            a = s[0] : f32[2, 4] {partitioner_tag: is_forward}
            t = split(x, 2) : (f32[2, 4], f32[2, 4] offset 8) {partitioner_tag: is_forward, custom: '{\"ap_must_save\": true, \"ap_must_save_getitem_indices\": [1]}'}
            b = t[1] : f32[2, 4] offset 8 {partitioner_tag: is_forward}
            y = mul(a, b) : f32[2, 4] {partitioner_tag: is_forward}
            g = mul(tangents_1, b) : f32[2, 4] {partitioner_tag: is_backward}
            output (y, g)",
        ),
        // Every write has a copy of its own there.
        (
            "K21a",
            "pass partition method=min-cut num_fwd_outputs=2
            primals_1 = input : f32[4]
            tangents_1 = input : f32[4]
            a = zeros_like(primals_1) : f32[4] {partitioner_tag: is_forward}
            b = zeros_like(primals_1) : f32[4] {partitioner_tag: is_forward}
            u = add_(a, primals_1) : f32[4] {partitioner_tag: is_forward}
            y = sin(primals_1) : f32[4] {partitioner_tag: is_forward}
            c = cos(primals_1) : f32[4] {partitioner_tag: is_backward}
            g = mul(tangents_1, c) : f32[4] {partitioner_tag: is_backward}
            output (y, b, g)",
        ),
        // No operator takes an integer there.
        (
            "K21b",
            "pass partition method=min-cut num_fwd_outputs=2
            primals_1 = input : f32[4]
            primals_2 = input : i64[4]
            tangents_1 = input : f32[4]
            a = add(primals_2, 1) : i64[4] {partitioner_tag: is_forward}
            b = add(primals_2, 1.0) : f32[4] {partitioner_tag: is_forward}
            u = mul(b, primals_1) : f32[4] {partitioner_tag: is_forward}
            v = neg(a) : i64[4] {partitioner_tag: is_forward}
            g = mul(tangents_1, b) : f32[4] {partitioner_tag: is_backward}
            h = mul(g, a) : f32[4] {partitioner_tag: is_backward}
            output (u, v, h, None)",
        ),
        // There is one group there.
        (
            "K21d",
            "world 4 ranks, groups dp = [0 1 | 2 3], tp = [0 2 | 1 3]
            pass partition method=min-cut num_fwd_outputs=2
            primals_1 = input : f32[4]
            tangents_1 = input : f32[4]
            a = all_reduce(primals_1, \"sum\", dp) : f32[4] {partitioner_tag: is_forward}
            wa = wait(a) : f32[4] {partitioner_tag: is_forward}
            b = all_reduce(primals_1, \"sum\", tp) : f32[4] {partitioner_tag: is_forward}
            wb = wait(b) : f32[4] {partitioner_tag: is_forward}
            u = sin(wa) : f32[4] {partitioner_tag: is_forward}
            v = cos(wb) : f32[4] {partitioner_tag: is_forward}
            g = mul(tangents_1, primals_1) : f32[4] {partitioner_tag: is_backward}
            output (u, v, g)",
        ),
    ];

    #[test]
    fn witnesses() {
        let mut wrong = Vec::new();
        for (name, text) in WITNESSES {
            let text = format!("graph witness joint\n{text}\n");
            let case = crate::format::text::parse(&text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
            let (graph, pass) = (&case.graph, case.pass.as_ref().unwrap());
            let mutant = PartitionMutant::named(name).unwrap();
            let sound = judge_by(graph, pass, &Options::default(), mutant.way, &Reference).unwrap();
            let judged = mutant.judge(graph, pass, &Options::default()).unwrap();
            let rules = judged.violated_rules();
            if sound.verdict != Verdict::Sound || !mutant.convicted_by.iter().any(|rule| rules.contains(rule))
            {
                wrong.push(format!("{name}: {rules:?}, and the reference {:?}", sound.verdict));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn number(variable: &str, otherwise: u64) -> u64 {
        std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    fn violates(judged: &Result<Judgement, CannotJudge>) -> Vec<&'static str> {
        judged.as_ref().map(Judgement::violated_rules).unwrap_or_default()
    }

    /// A case counts only where the reference, judged in the same way, is sound: not every choice that it makes keeps a
    /// budget to the byte, and not every case asks for parameters to be gathered again.
    #[test]
    fn the_reference_is_sound_and_every_mutant_is_convicted() {
        let cases = number("PARTITION_CASES", 1300);
        let mut convicted: Vec<Option<(u64, &str)>> = vec![None; PARTITION_MUTANTS.len()];
        let (options, mut faults) = (Options::default(), Vec::new());
        for index in 0..cases {
            let case = joint::case(&joint::Config::default(), 81, index);
            let pass = case.pass.clone().unwrap();
            let text = |parts: Partition| (print_graph(&parts.forward), print_graph(&parts.backward));
            let config = partition_config(&pass).unwrap();
            let Ok(own) = partition::run(&case.graph, &config).map(text) else { continue };
            let by_reference = |way| judge_by(&case.graph, &pass, &options, way, &Reference);
            let judged = by_reference(Way::Cut);
            if !violates(&judged).is_empty() {
                println!("case {index}: the reference violates {:?}", violates(&judged));
                faults.push(index);
            }
            let mut sound = vec![(Way::Cut, judged.is_ok_and(|judged| judged.verdict == Verdict::Sound))];
            for (i, mutant) in mutants().enumerate() {
                let several = matches!(mutant.way, Way::Ranks | Way::Budgets | Way::Layers);
                // What it does as the reference does needs no verdict.
                let same = || mutant.cut(&case.graph, &config).is_ok_and(|parts| text(parts) == own);
                if convicted[i].is_some() || (!several && same()) {
                    continue;
                }
                let known = sound.iter().find(|(way, _)| *way == mutant.way).map(|(_, sound)| *sound);
                let is_sound = known.unwrap_or_else(|| {
                    let judged = by_reference(mutant.way);
                    sound.push((mutant.way, judged.is_ok_and(|judged| judged.verdict == Verdict::Sound)));
                    sound[sound.len() - 1].1
                });
                if is_sound {
                    let rules = violates(&mutant.judge(&case.graph, &pass, &options));
                    let by = mutant.convicted_by.iter().copied().find(|rule| rules.contains(rule));
                    convicted[i] = by.map(|rule| (index + 1, rule));
                }
            }
        }
        assert_eq!(faults, [0u64; 0], "cases in which the reference is at fault");
        for (mutant, found) in mutants().zip(&convicted) {
            match found {
                Some((cases, rule)) => println!("{} after {cases} cases by {rule}", mutant.name),
                None => println!("{} lives on: it {}", mutant.name, mutant.about),
            }
            let witnessed = WITNESSES.iter().any(|(name, _)| *name == mutant.name);
            assert!(found.is_some() || witnessed, "{} lives on", mutant.name);
        }
    }
}
