//! Views that are several windows: the pieces of a dimension, and its indices one by one.

use super::size::{Size, ceil};
use super::window::{MAX_PIECES, NoWindow, Shown, Window, Windows, has_negative, misfit};

impl Window {
    /// Each index of a dimension.
    pub fn unbound(&self, dim: i64) -> Shown<Windows> {
        let (_, size) = self.known_dim(dim)?;
        listable(size)?;
        (0..size).map(|i| self.clone().selected(dim, Size::Known(i))).collect()
    }

    /// Pieces of one size, the last one being what is left.
    pub fn split(&self, dim: i64, size: i64) -> Shown<Windows> {
        let (dim, total) = self.known_dim(dim)?;
        if size < 0 || (size == 0 && total != 0) {
            return misfit(format!("cannot split dimension {dim} of $ in pieces of {size}"), &[&self.shape]);
        }
        let count = if size == 0 { 1 } else { ceil(total, size).max(1) };
        self.even_pieces(dim, total, size, count)
    }

    /// At most so many pieces, all but the last of one size. An empty dimension gives as many empty ones.
    pub fn chunked(&self, dim: i64, chunks: i64) -> Shown<Windows> {
        let (dim, total) = self.known_dim(dim)?;
        if chunks <= 0 {
            return misfit(format!("cannot cut $ in {chunks} chunks"), &[&self.shape]);
        }
        if total <= 0 {
            return self.even_pieces(dim, 0, 0, chunks);
        }
        let size = ceil(total, chunks);
        self.even_pieces(dim, total, size, ceil(total, size))
    }

    fn even_pieces(&self, dim: usize, total: i64, size: i64, count: i64) -> Shown<Windows> {
        listable(count)?;
        let piece = |i: i64| {
            let start = i.saturating_mul(size);
            self.piece(dim, Size::Known(start), Size::Known(size.min(total - start)))
        };
        Ok((0..count).map(piece).collect())
    }

    /// Pieces of the given sizes, side by side.
    pub fn split_with_sizes(&self, dim: i64, sizes: &[Size]) -> Shown<Windows> {
        let (dim, of) = self.dim(dim)?;
        let total = sizes.iter().fold(Size::Known(0), |sum, &s| sum.plus(s));
        if total.differs(of) || has_negative(sizes) {
            return misfit(format!("cannot split dimension {dim} of $ in pieces $"), &[&self.shape, sizes]);
        }
        let mut start = Size::Known(0);
        let mut pieces = Windows::with_capacity(sizes.len());
        for &size in sizes {
            pieces.push(self.piece(dim, start, size));
            start = start.plus(size);
        }
        Ok(pieces)
    }

    /// The piece of `dim` from `start`, `length` long, both within the window.
    fn piece(&self, dim: usize, start: Size, length: Size) -> Window {
        let mut piece = self.clone().moved(dim, start);
        piece.shape[dim] = length;
        piece
    }
}

/// Whether so many pieces of one tensor are listed.
fn listable(count: i64) -> Shown<()> {
    if count > MAX_PIECES { Err(NoWindow::Pieces(count)) } else { Ok(()) }
}
