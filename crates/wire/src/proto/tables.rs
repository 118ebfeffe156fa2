//! Tables of jobs: what they read and write, how much of it has gone by.

use vocab::{OutputTable, PipeUse, RowFlow, Span, TableIo, TableStatistics};
use yson::Value;

use super::{Malformed, pb};

/// The inverse of [`yson::to_binary`]; what is not there is the entity.
fn value(field: &'static str, bytes: &[u8]) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Entity);
    }
    yson::parse_record(bytes).map_err(|_| Malformed::Yson(field))
}

impl From<&TableIo> for pb::TableIo {
    fn from(t: &TableIo) -> pb::TableIo {
        pb::TableIo {
            input_rows: t.input_rows,
            input_format: yson::to_binary(&t.input_format),
            output_format: yson::to_binary(&t.output_format),
            outputs: t.outputs.iter().map(Into::into).collect(),
            first_output: t.first_output,
            check_input_fully_consumed: t.check_input_fully_consumed,
        }
    }
}
impl TryFrom<pb::TableIo> for TableIo {
    type Error = Malformed;
    fn try_from(t: pb::TableIo) -> Result<TableIo, Malformed> {
        Ok(TableIo {
            input_rows: t.input_rows,
            input_format: value("input_format", &t.input_format)?,
            output_format: value("output_format", &t.output_format)?,
            outputs: t.outputs.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            first_output: t.first_output,
            check_input_fully_consumed: t.check_input_fully_consumed,
        })
    }
}

impl From<&OutputTable> for pb::OutputTable {
    fn from(t: &OutputTable) -> pb::OutputTable {
        pb::OutputTable { schema: yson::to_binary(&t.schema), sorted_by: t.sorted_by.clone() }
    }
}
impl TryFrom<pb::OutputTable> for OutputTable {
    type Error = Malformed;
    fn try_from(t: pb::OutputTable) -> Result<OutputTable, Malformed> {
        Ok(OutputTable { schema: value("schema", &t.schema)?, sorted_by: t.sorted_by })
    }
}

impl From<&TableStatistics> for pb::TableStatistics {
    fn from(s: &TableStatistics) -> pb::TableStatistics {
        pb::TableStatistics {
            input: Some(flow_to(&s.input)),
            not_fully_consumed: s.not_fully_consumed,
            outputs: s.outputs.iter().map(flow_to).collect(),
            input_pipe: Some(pipe_to(&s.input_pipe)),
            output_pipes: s.output_pipes.iter().map(pipe_to).collect(),
        }
    }
}
impl From<pb::TableStatistics> for TableStatistics {
    fn from(s: pb::TableStatistics) -> TableStatistics {
        TableStatistics {
            input: s.input.map(flow_from).unwrap_or_default(),
            not_fully_consumed: s.not_fully_consumed,
            outputs: s.outputs.into_iter().map(flow_from).collect(),
            input_pipe: s.input_pipe.map(pipe_from).unwrap_or_default(),
            output_pipes: s.output_pipes.into_iter().map(pipe_from).collect(),
        }
    }
}

fn pipe_to(p: &PipeUse) -> pb::PipeUse {
    pb::PipeUse { bytes: p.bytes, idle_time: p.idle_time.0, busy_time: p.busy_time.0 }
}

fn pipe_from(p: pb::PipeUse) -> PipeUse {
    PipeUse { bytes: p.bytes, idle_time: Span(p.idle_time), busy_time: Span(p.busy_time) }
}

fn flow_to(f: &RowFlow) -> pb::RowFlow {
    pb::RowFlow {
        row_count: f.row_count,
        data_weight: f.data_weight,
        uncompressed_data_size: f.uncompressed_data_size,
    }
}

fn flow_from(f: pb::RowFlow) -> RowFlow {
    RowFlow {
        row_count: f.row_count,
        data_weight: f.data_weight,
        uncompressed_data_size: f.uncompressed_data_size,
    }
}
