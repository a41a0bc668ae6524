//! How many threads work at once.

use crate::limits::Limit;

/// The variables by which users set the number of rayon's threads.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// The number of threads that was asked for, within [`Limit::Threads`]. 0 stands for one per core.
pub fn within_limit(wanted: usize) -> usize {
    wanted.min(Limit::Threads.standard() as usize)
}

/// Threads of rayon's own pool for each processor: more of them only wait for one another.
const PER_PROCESSOR: usize = 4;

/// Keeps rayon's own pool within the limit: it ends the program where the system has no more threads.
pub fn limit_pool() {
    let wanted = VARIABLES.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    let Some(mut count) = wanted.filter(|&wanted| wanted > 1) else { return };
    // A pool that is there already stays; one that cannot be made is tried smaller.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    count = within_limit(count).min(processors.saturating_mul(PER_PROCESSOR));
    while rayon::ThreadPoolBuilder::new().num_threads(count).build_global().is_err() && count > 1 {
        count /= 2;
    }
}
