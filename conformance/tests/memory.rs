//! The in-memory driver keeps the contract.

wraith_conformance::counting_allocator!();
wraith_conformance::suite!(wraith_conformance::Memory: Park);
