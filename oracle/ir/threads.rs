//! Work that may be done at once: by the threads of rayon's pool with the feature `threads`, one after the other
//! without it, as where there are no threads. What comes out is the same.

#[cfg(feature = "threads")]
use rayon::prelude::*;

/// How many threads there are.
pub fn count() -> usize {
    #[cfg(feature = "threads")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "threads"))]
    1
}

/// What both give.
pub fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    #[cfg(feature = "threads")]
    return rayon::join(one, other);
    #[cfg(not(feature = "threads"))]
    (one(), other())
}

/// The results of `f` for each item, in their order.
pub fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    #[cfg(feature = "threads")]
    return items.into_par_iter().map(f).collect();
    #[cfg(not(feature = "threads"))]
    items.into_iter().map(f).collect()
}

/// Does `own` here, and meanwhile `help` on each of `helpers` other threads, if there are any.
pub fn helped<'s, F: FnOnce() + Send + 's>(helpers: usize, help: impl Fn() -> F, own: impl FnOnce()) {
    #[cfg(feature = "threads")]
    rayon::in_place_scope(|scope| {
        for _ in 0..helpers {
            let help = help();
            scope.spawn(move |_| help());
        }
        own();
    });
    #[cfg(not(feature = "threads"))]
    {
        let _ = (helpers, help);
        own();
    }
}
