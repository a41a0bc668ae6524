use fuzzing::deadlock::check_source;
use graph_oracle::generate::Seeded;

#[test]
fn agrees_with_a_search_through_all_interleavings() {
    let count = crate::common::scale::scaled(200);
    let compared: Vec<_> = (0..count).map(|case| check_source(&mut Seeded::case(7, case))).collect();
    let finish = compared.iter().filter(|c| c.finish).count();
    let states: usize = compared.iter().map(|c| c.states).sum();
    let stuck = compared.len() - finish;
    println!("{count} programs: {finish} finish, {stuck} do not; {states} states");
    assert!(finish * 5 > compared.len() && stuck * 5 > compared.len(), "{finish} finish, {stuck} do not");
}
