fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::fs::read(&a[1]).unwrap();
    let c = match graph_oracle::format::text::parse(t) { Ok(c) => c, Err(e) => { eprintln!("{}", e.render(Some(&a[1]))); return } };
    match graph_oracle::format::svg::svg(&c.graph) { Ok(s) => std::fs::write(&a[2], s).unwrap(), Err(e) => eprintln!("{e}") }
}
