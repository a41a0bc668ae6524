//! Collectives, waits and streams.

use super::Row;
use crate::ops::kind::Kind;

/// Communication over a process group. Schemas: `torch/csrc/distributed/c10d/Functional.cpp`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Collective {
    AllGather,
    ReduceScatter,
    AllReduce,
    AllToAll,
    Broadcast,
    Send,
    Recv,
    /// `batch_p2p_ops`: several sends and receives started together.
    PointToPoint,
    Barrier,
    /// `_dtensor.shard_dim_alltoall`: moves the sharding of a tensor from one dimension to another.
    ShardDimAllToAll,
    /// Communication of a kind that the oracle does not model. Where nothing else is known it counts as done when the call
    /// is.
    Other,
}

/// What orders streams, or changes the one that is current. Source: `torch/_dynamo/variables/streams.py`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sync {
    /// An event marks what a stream was given so far.
    RecordEvent,
    /// A stream waits for an event.
    WaitEvent,
    /// A stream waits for what another one was given so far.
    WaitStream,
    /// The host waits for an event.
    SynchronizeEvent,
    /// The host waits for a stream.
    SynchronizeStream,
    /// The host waits for all streams of a device.
    SynchronizeDevice,
    /// A stream waits for an event, and then a tensor may be freed.
    Deallocate,
    /// The allocator is told that a stream uses a tensor.
    RecordStream,
    /// Another stream becomes the current one.
    Fork,
    /// The same, on the way back.
    Join,
}

impl Collective {
    /// The message that an element of the `op_list` of `batch_p2p_ops` stands for.
    pub fn message(operation: &str) -> Option<Collective> {
        match operation {
            "isend" => Some(Collective::Send),
            "irecv" => Some(Collective::Recv),
            _ => None,
        }
    }

    /// Whether it is between two ranks rather than among all of a group.
    pub fn is_message(self) -> bool {
        matches!(self, Collective::Send | Collective::Recv | Collective::PointToPoint)
    }

    /// Whether PyTorch makes its functional form of the one in place by a copy of what it sends
    /// (`torch/csrc/distributed/c10d/Functional.cpp`).
    pub fn sends_a_copy(self) -> bool {
        matches!(self, Collective::AllReduce | Collective::Broadcast)
    }

    /// Whether the oracle does not know what ranks receive.
    pub fn is_unmodelled(self) -> bool {
        self == Collective::Other
    }

    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::AllReduce => "all_reduce",
            Collective::AllToAll => "all_to_all",
            Collective::Broadcast => "broadcast",
            Collective::Send => "send",
            Collective::Recv => "recv",
            Collective::PointToPoint => "batch_p2p",
            Collective::Barrier => "barrier",
            Collective::ShardDimAllToAll => "shard_dim_alltoall",
            Collective::Other => "communication",
        }
    }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // torch/csrc/distributed/c10d/Functional.cpp.
    ("all_gather",               Kind::Collective(Collective::AllGather),        "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor"),
    ("all_gather_out",           Kind::Collective(Collective::AllGather),        "_c10d_functional::all_gather_into_tensor_out(Tensor input, int group_size, Any group_name, *, Tensor(a!) out) -> Tensor(a!)"),
    ("all_gather_coalesced",     Kind::Collective(Collective::AllGather),        "_c10d_functional::all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, Any group_name) -> Tensor[]"),
    ("reduce_scatter",           Kind::Collective(Collective::ReduceScatter),    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor"),
    ("reduce_scatter_out",       Kind::Collective(Collective::ReduceScatter),    "_c10d_functional::reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, Any group_name, *, Tensor(a!) out) -> Tensor(a!)"),
    ("reduce_scatter_coalesced", Kind::Collective(Collective::ReduceScatter),    "_c10d_functional::reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, Any group_name) -> Tensor[]"),
    ("all_reduce",               Kind::Collective(Collective::AllReduce),        "_c10d_functional::all_reduce(Tensor input, Any reduce_op, Any group_name) -> Tensor"),
    ("all_reduce_",              Kind::Collective(Collective::AllReduce),        "_c10d_functional::all_reduce_(Tensor(a!) input, Any reduce_op, Any group_name) -> Tensor(a!)"),
    ("all_reduce_coalesced",     Kind::Collective(Collective::AllReduce),        "_c10d_functional::all_reduce_coalesced(Tensor[] inputs, Any reduce_op, Any group_name) -> Tensor[]"),
    ("all_reduce_coalesced_",    Kind::Collective(Collective::AllReduce),        "_c10d_functional::all_reduce_coalesced_(Tensor[](a!) inputs, Any reduce_op, Any group_name) -> Tensor[](a!)"),
    ("all_to_all",               Kind::Collective(Collective::AllToAll),         "_c10d_functional::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) -> Tensor"),
    ("broadcast",                Kind::Collective(Collective::Broadcast),        "_c10d_functional::broadcast(Tensor input, int src, Any group_name) -> Tensor"),
    ("broadcast_",               Kind::Collective(Collective::Broadcast),        "_c10d_functional::broadcast_(Tensor(a!) input, int src, Any group_name) -> Tensor(a!)"),
    ("send",                     Kind::Collective(Collective::Send),             "_c10d_functional::isend(Tensor tensor, int dst, int tag, str group_name) -> Tensor"),
    ("recv",                     Kind::Collective(Collective::Recv),             "_c10d_functional::irecv(Tensor tensor, int src, int tag, str group_name) -> Tensor"),
    ("batch_p2p",                Kind::Collective(Collective::PointToPoint),     "_c10d_functional::batch_p2p_ops(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, str group_name) -> Tensor[]"),
    ("wait",                     Kind::Wait,                                     "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor"),
    ("wait_all",                 Kind::Wait,                                     "_c10d_functional::wait_tensors(Tensor[] tensors) -> Tensor[]"),
    ("shard_dim_alltoall",       Kind::Collective(Collective::ShardDimAllToAll), "_dtensor::shard_dim_alltoall(Tensor input, int gather_dim, int shard_dim, Any group_name) -> Tensor"),
    ("barrier",                  Kind::Collective(Collective::Barrier),          "c10d::barrier(Tensor tensor, __torch__.torch.classes.c10d.ProcessGroup process_group, int[] device_ids, bool async_op=True, int timeout=-1) -> __torch__.torch.classes.c10d.Work"),
    ("",                         Kind::Collective(Collective::Barrier),          "c10d::monitored_barrier_(Tensor tensor, __torch__.torch.classes.c10d.ProcessGroup process_group, int[] device_ids, int timeout, bool wait_all_ranks) -> ()"),
    // The same with autograd.
    ("",                         Kind::Collective(Collective::AllToAll),         "_c10d_functional_autograd::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::ReduceScatter),    "_c10d_functional_autograd::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllGather),        "_c10d_functional_autograd::all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor"),
    // The legacy namespace: groups are given as a tag and a list of ranks.
    ("",                         Kind::Collective(Collective::AllGather),        "c10d_functional::all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllGather),        "c10d_functional::all_gather_into_tensor_coalesced(Tensor[] input, str tag, int[] ranks, int group_size) -> Tensor[]"),
    ("",                         Kind::Collective(Collective::ReduceScatter),    "c10d_functional::reduce_scatter_tensor(Tensor input, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor"),
    ("",                         Kind::Collective(Collective::ReduceScatter),    "c10d_functional::reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]"),
    ("",                         Kind::Collective(Collective::AllReduce),        "c10d_functional::all_reduce(Tensor self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllReduce),        "c10d_functional::all_reduce_coalesced(Tensor[] self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]"),
    ("",                         Kind::Collective(Collective::AllToAll),         "c10d_functional::all_to_all_single(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, str tag, int[] ranks, int group_size) -> Tensor"),
    ("",                         Kind::Collective(Collective::Broadcast),        "c10d_functional::broadcast(Tensor self, int src, str tag, int[] ranks, int group_size) -> Tensor"),
    ("",                         Kind::Collective(Collective::Send),             "c10d_functional::isend(Tensor self, int dst, int tag, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::Recv),             "c10d_functional::irecv(Tensor self, int src, int tag, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::PointToPoint),     "c10d_functional::batch_p2p_ops(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, str group_name) -> Tensor[]"),
    ("",                         Kind::Wait,                                     "c10d_functional::wait_tensor(Tensor self) -> Tensor"),
    // Symmetric memory.
    ("",                         Kind::Collective(Collective::AllGather),        "symm_mem::_low_contention_all_gather(Tensor tensor, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllGather),        "symm_mem::_low_contention_all_gather_ce_multicast(Tensor tensor, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllGather),        "symm_mem::_low_contention_all_gather_ce_multicast_out(Tensor tensor, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::ReduceScatter),    "symm_mem::_low_contention_reduce_scatter(Tensor tensor, str reduce_op, str group_name) -> Tensor"),
    // No operators of PyTorch: what the fused ones are made of (analysis/fused.rs).
    ("",                         Kind::Collective(Collective::AllGather),        "symm_mem::all_gather(Tensor input, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::ReduceScatter),    "symm_mem::reduce_scatter(Tensor input, str reduce_op, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::fused_all_gather_matmul(Tensor A, Tensor[] Bs, int gather_dim, str group_name, *, bool return_A=True) -> (Tensor?, Tensor[])"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::fused_all_gather_scaled_matmul(Tensor A, Tensor[] Bs, Tensor A_scale, Tensor[] B_scales, int gather_dim, str group_name, Tensor?[] biases, Tensor?[] result_scales, ScalarType?[] out_dtypes, bool[] use_fast_accum) -> (Tensor, Tensor[])"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::fused_matmul_reduce_scatter(Tensor A, Tensor B, str reduce_op, int scatter_dim, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::fused_scaled_matmul_reduce_scatter(Tensor A, Tensor B, Tensor A_scale, Tensor B_scale, str reduce_op, int orig_scatter_dim, int scatter_dim_after_maybe_reshape, str group_name, SymInt[]? output_shape, Tensor? bias=None, Tensor? result_scale=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::one_shot_all_reduce_copy(Tensor symm_buffer, Tensor local_input, str reduce_op, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::one_shot_all_reduce_copy_out(Tensor symm_buffer, Tensor local_input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::two_shot_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::two_shot_all_reduce_out(Tensor(a!) input, str reduce_op, str group_name, Tensor(b!) output) -> Tensor(b!)"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::multimem_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::multimem_one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor"),
    ("",                         Kind::Collective(Collective::AllReduce),        "symm_mem::multimem_one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::multimem_one_shot_reduce_out(Tensor input, str reduce_op, int root, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::AllGather),        "symm_mem::multimem_all_gather_out(Tensor input, str group_name, Tensor(a!) out) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::reduce_scatter_out(Tensor(a!) input, str group_name, bool split_last_dim, Tensor(b!) output) -> Tensor(b!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::all_to_all_vdev(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(a!) out_splits_offsets, str group_name) -> ()"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::all_to_all_vdev_2d(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(a!) out_splits_offsets, str group_name, int? major_align=None) -> ()"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::all_to_all_vdev_2d_offset(Tensor input, Tensor(a!) out, Tensor in_splits_offsets, Tensor(a!) out_splits_offsets, str group_name) -> ()"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::nvshmem_all_to_all(Tensor input, Tensor(a!) out, str group_name) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Broadcast),        "symm_mem::nvshmem_broadcast(Tensor(a!) input, int root, str group_name) -> Tensor(a!)"),
    ("",                         Kind::Collective(Collective::Other),            "symm_mem::nccl_all_to_all_nd(Tensor input, Tensor(a!) out, int scatter_dim, int gather_dim, str group_name) -> ()"),
    ("",                         Kind::Collective(Collective::Other),            r#"symm_mem::nccl_reduce_scatter_offset(Tensor input, Tensor(a!)[] out, str group_name, int dim, int[]? offsets=None, int[]? dst_ranks=None, str red_op="sum") -> ()"#),
    ("",                         Kind::Collective(Collective::Other),            r#"symm_mem::tile_reduce(Tensor in_tile, Tensor(a!) out_tile, int root, str group_name, str reduce_op="sum") -> ()"#),
    ("",                         Kind::Collective(Collective::Other),            r#"symm_mem::multi_root_tile_reduce(Tensor[] in_tiles, Tensor(a!) out_tile, int[] roots, str group_name, str reduce_op="sum") -> ()"#),
    // Streams and events: order only (ir/analysis/streams.rs).
    ("",                         Kind::Sync(Sync::RecordStream),                 "streams::record_stream(Tensor tensor, SymInt stream_index) -> ()"),
    ("",                         Kind::Sync(Sync::Deallocate),                   "streams::sync_dealloc(SymInt wait_event_index, SymInt src_stream_index, Tensor to_dealloc) -> ()"),
    ("",                         Kind::Sync(Sync::WaitStream),                   "streams::wait_stream(SymInt waiting_stream_index, SymInt waited_on_stream_index) -> ()"),
    ("",                         Kind::Sync(Sync::SynchronizeStream),            "streams::synchronize_stream(SymInt stream_index) -> ()"),
    ("",                         Kind::Sync(Sync::SynchronizeDevice),            "streams::synchronize_device(str device_type, SymInt? device_index) -> ()"),
    ("",                         Kind::Sync(Sync::SynchronizeEvent),             "streams::synchronize_event(SymInt event_index) -> ()"),
    ("",                         Kind::Sync(Sync::WaitEvent),                    "streams::wait_event(SymInt event_index, SymInt stream_index) -> ()"),
    ("",                         Kind::Sync(Sync::RecordEvent),                  "streams::record_event(SymInt event_index, SymInt stream_index) -> ()"),
    ("",                         Kind::Sync(Sync::Join),                         "streams::join(SymInt from_index, SymInt to_index) -> ()"),
    ("",                         Kind::Sync(Sync::Fork),                         "streams::fork(SymInt from_index, SymInt to_index) -> ()"),
    ("",                         Kind::Effect,                                   "fsdp::record_grad_output_stream(Tensor buffer, int stream_id, int device_index, int device_type) -> ()"),
];
