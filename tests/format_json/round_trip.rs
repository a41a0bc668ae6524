//! Reading and writing loses nothing.

use super::{corpus, read, recorded, unpacked, written};
use graph_oracle::files;
use serde_json::Value;
use std::path::PathBuf;

fn nothing_is_lost(files: &[PathBuf]) {
    let (mut nodes, mut most) = (0, 0);
    for path in files {
        let text = String::from_utf8(unpacked(path)).unwrap();
        let graph = read(&text);
        let again = written(&graph);
        if again != text {
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert!(value(&again) == value(&text), "{}: other JSON", path.display());
            panic!("{}: the same JSON, other text", path.display());
        }
        nodes += graph.len();
        // The models. The others are small, and the texts of their schemas weigh more.
        let name = path.file_name().unwrap().to_string_lossy();
        if ["llama3_", "dsv3_"].iter().any(|model| name.starts_with(model)) {
            most = most.max(graph.memory() / graph.len());
        }
    }
    println!(
        "{} graphs, {nodes} nodes: same bytes; models: at most {most} bytes of memory a node",
        files.len()
    );
    assert!(most <= 300, "{most} bytes of memory a node");
}

#[test]
fn of_the_corpus() {
    let files = corpus();
    assert_eq!(files.len(), 6);
    nothing_is_lost(&files);
}

#[test]
fn of_the_recorded_graphs() {
    nothing_is_lost(&recorded());
}

#[test]
fn of_unknown_keys_at_every_level() {
    let text = r#"{
"schema_version":"graph-oracle/1",
"name":"n",
"kind":"forward",
"source":"s",
"groups":{"0":{"size":2,"rank":1,"backend":"nccl","mesh":[1.0,1]}},
"symbols":{"u0":{"hint":null,"range":["0","int_oo"],"unbacked":true,"why":null}},
"num_nodes":2,
"timing":{"s":1.50,"big":123456789012345678901234567890},
"ops":{
"a.b.c":{"anything":[ 1, 2 ]}
},
"nodes":[
{"name":"x","op":"placeholder","target":"x","out":{"t":"tensor","shape":[],"dtype":"float32","device":"cpu","stride":[],"storage":0,"offset":0,"storage_bytes":4,"layout":"strided","requires":{"a":[]}},"tags":{"seq_nr":3,"custom":{"k":[1,2.0]},"color":"red"},"line":12,"\"quoted\"":"\u00e9"},
{"name":"output","op":"output","target":"output","args":[{"ref":"x"}]}
],
"subgraphs":{
"body":[],
"nested":{"nodes":[{"name":"y","op":"placeholder","target":"y"}],
"subgraphs":{
"inner":[]
}}
}
}
"#;
    assert_eq!(written(&read(text)), text);
}

#[test]
fn of_every_value_and_result() {
    let text = r#"{
"schema_version":"fxjson/1",
"name":"n",
"kind":"forward",
"groups":{},
"symbols":{},
"num_nodes":2,
"ops":{},
"nodes":[
{"name":"f","op":"call_function","target":"a.b.c","args":[null,true,-3,9223372036854775807,-9223372036854775808,2.0,1e-05,1e+16,-0.0,{"float":"inf"},{"float":"-inf"},{"float":"nan"},"text",{"ref":"output"},{"ref":"nowhere"},[[],[{"ref":"f"}]],{"dtype":"float8_e4m3fn"},{"device":"cuda:0"},{"memory_format":"torch.contiguous_format"},{"layout":"torch.strided"},{"complex":[1.0,-2]},{"slice":[null,4,1]},{"sym":"u0 + 1","hint":null},{"sym":"s0","hint":8},{"dict":[["k",1],[2,{"ref":"f"}]]},{"dict":[]},{"fn":"operator.add"}],"kwargs":{"k":[1,{"slice":[1,2,null]}],"":null},"out":[null,{"t":"tensor","shape":[{"sym":"u0","hint":null},0],"dtype":"bool","device":"cpu","stride":[1,{"sym":"s0","hint":8}],"storage":4294967295,"offset":7,"storage_bytes":{"sym":"u0*4","hint":null},"requires_grad":false},{"t":"int","value":-9},{"t":"symint","sym":"u0","hint":null},{"t":"symbool","sym":"u0 >= 0","hint":1},{"t":"other","type":"Thing"},[[],null],{"dict":[["a",null],["b",{"dict":[]}]]}],"tags":{"recompute":"MUST_SAVE","ac_graph_id":-1,"partitioner_tag":"is_forward","seq_nr":0,"is_gradient_acc":true,"autograd_backward":false,"custom":[null]},"stack":"s \"q\"\n","module":"","desc":"d"},
{"name":"output","op":"output","target":"output","args":[],"out":null}
]
}
"#;
    assert_eq!(written(&read(text)), text);
}

#[test]
fn packed_files_are_the_same_documents() {
    let folder = std::env::temp_dir().join(format!("graph-oracle-format-json-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let document = files::read_path(&corpus()[0]).unwrap();
    let mut files = Vec::new();
    for name in ["a.json", "a.json.gz", "b.json.gz"] {
        let path = folder.join(name);
        files::write_path(&document, &path).unwrap();
        files.push(std::fs::read(&path).unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(files[0], unpacked(&corpus()[0]));
    assert!(files[1].starts_with(&[0x1f, 0x8b]) && files[1].len() * 4 < files[0].len());
    assert_eq!(files[1], files[2]);
    assert_eq!(written(&read(&files[1])).as_bytes(), files[0]);
}
