//! Tables of operations with jobs (jobs-and-nodes.md 8.4, http-api.md 13): what they read stays as it was when
//! they began, what they write is hidden until they complete.
//!
//! When the operation is prepared its outputs are locked by a transaction of its own, and the rows that it will
//! read are written down: chunks never change, so the inputs may become whatever they like. The rows are cut
//! into units, and that is written down too. A job that has done its unit has left a chunk for each output
//! table; these are noted in the batch that counts the end of the job. The end of the operation makes them
//! rows of the outputs and commits the transaction, all in one batch.

use crate::command::LockMode;
use crate::job_input::pieces_of;
use crate::jobs::Uploaded;
use crate::operation::{Operation, unknown_payer};
use crate::records::{OUTPUT, operation_key, payer_from_value, payer_value};
use crate::table::TableRows;
use crate::{Effect, Kernel};
use controller::cut::{Piece, cut};
use controller::spec::{MapSpec, OperationSpec, TaskSpec};
use cypress::transactions::locks::Part;
use cypress::{Chunk, Context, Hold, LockOptions, Payer, Permission, StartOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, Range};
use std::sync::Arc;
use tables::{Columns, Selection, about};
use vocab::batch::Table;
use vocab::code;
use vocab::{Failure, JobId, ObjectId, OperationId, OperationState, OutputTable, Span, TableIo, Time};
use yson::ypath::YPath;
use yson::{Map, Value};

/// What an operation reads and writes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct WorkTables {
    /// Holds the locks on the outputs.
    pub transaction: ObjectId,
    /// Rows to read, in order.
    pub pieces: Vec<InputPiece>,
    /// Of each input table: is charged for chunks in `pieces` that the table has no more.
    pub payers: Vec<Arc<Payer>>,
    /// Of each input table.
    pub columns: Vec<Columns>,
    /// In the order of which columns the rows of all pieces are read; none: as they lie.
    pub merge_by: Vec<String>,
    /// Ends of the units, in rows of all pieces together.
    pub ends: Vec<u64>,
    /// Of all tasks, each once.
    pub outputs: Vec<Target>,
    /// For each task, in the order of its descriptors, the numbers of its outputs.
    pub task_outputs: Vec<Vec<u32>>,
    /// What was written, by the place of the unit (`unit_done` of [`controller::JobVerdict`]) and the number of the
    /// output table.
    pub done: BTreeMap<(u64, u32), Chunk>,
    /// Rows in `done`, by the number of the output table.
    pub written: Vec<u64>,
}

/// Rows that lie together in one chunk.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct InputPiece {
    /// Number of the input table.
    pub table: u32,
    /// Number of the range in it.
    pub range: u32,
    /// Number of the first row in the table.
    pub row_index: u64,
    pub blob: u64,
    /// Bytes of the blob.
    pub size: u64,
    /// Which rows of the chunk.
    pub rows: Range<u64>,
}

/// An output table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Target {
    pub table: ObjectId,
    /// Is charged for chunks in `done` when the transaction is gone.
    pub payer: Arc<Payer>,
    pub append: bool,
    /// The table gets this schema; else it has it.
    pub replace_schema: bool,
    pub schema: Value,
    pub sorted_by: Vec<String>,
    /// The operation is complete when it has written so many rows here, whatever is left to do.
    pub row_count_limit: Option<u64>,
}

impl Target {
    /// A chunk that jobs have written.
    fn hold(&self, chunk: &Chunk) -> Hold {
        Hold { blob: chunk.blob, size: chunk.size, payer: Arc::clone(&self.payer) }
    }

    /// Rows behind others, in no order, come from as many operations as want to.
    fn lock_mode(&self) -> LockMode {
        match self.append && !self.replace_schema && self.sorted_by.is_empty() {
            true => LockMode::Shared(Part::Unnamed),
            false => LockMode::Exclusive,
        }
    }
}

/// Of the input of one operation: they are kept in memory and in its record.
const MAX_PIECES: usize = 200_000;

/// Blob of rows that the server has not kept: there was no room for them.
pub const NOT_KEPT: u64 = 0;

/// Of each a block is in memory while rows are merged by their keys.
const MAX_MERGED: usize = 100;

/// Nothing is ever written to a record of a transaction for a sign of life, so it may be long.
const TRANSACTION_TIMEOUT: Span = Span::from_secs(3600);

impl Kernel {
    /// Tables that are not for this user are refused with the call; those that are missing fail the operation
    /// when it is prepared.
    pub(crate) fn refuse_secret_tables(&self, user: &str, spec: &OperationSpec) -> Result<(), Failure> {
        let inputs = spec.map.iter().flat_map(|map| &map.inputs).map(|path| (Permission::Read, path));
        let outputs = spec.tasks.iter().flat_map(|task| &task.outputs).map(|path| (Permission::Write, path));
        for (permission, path) in inputs.chain(outputs) {
            match self.demand_path(user, permission, path) {
                Err(failure) if failure.code == vocab::code::ACCESS_DENIED => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds the tables of an operation, through the transaction that it was started in, and locks the outputs.
    pub(super) fn attach_tables(
        &mut self,
        now: Time,
        id: OperationId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let Some(operation) = self.operations.get(&id) else { return Ok(()) };
        let (map, merge) = (operation.spec.spec.map.clone(), operation.spec.spec.merge.clone());
        let (paths, task_outputs) = outputs_of(&operation.spec.spec.tasks);
        if map.is_none() && paths.is_empty() {
            return Ok(());
        }
        let (user, parent) = (operation.user.clone(), operation.user_transaction);
        for path in map.iter().flat_map(|map| &map.inputs) {
            self.demand_path(&user, Permission::Read, path)?;
        }
        for path in &paths {
            self.demand_path(&user, Permission::Write, path)?;
        }
        let inputs = map.iter().flat_map(|map| &map.inputs);
        self.note_use_of(inputs.filter_map(|path| Some(self.table(path).ok()?.0)).collect());
        // Nothing to do for jobs: the merge takes the chunks (see `merge`).
        if let (Some(merge), Some(_)) = (&merge, &map)
            && self.lies_apart(merge)?
        {
            return Ok(());
        }
        let input = map.as_ref().map(|map| self.input_pieces(map)).transpose()?;
        let (pieces, weights, columns) = input.unwrap_or_default();
        let payers = map.iter().flat_map(|map| &map.inputs).map(|path| self.payer_of_table(&user, path));
        let payers = payers.collect::<Result<Vec<_>, _>>()?;
        let targets = paths.iter().map(|path| self.target(&user, path));
        let mut outputs = targets.collect::<Result<Vec<_>, _>>()?;
        if let (Some(merge), [target]) = (&merge, outputs.as_mut_slice())
            && let Some(schema) = self.inferred_schema(merge)?
        {
            let sorted_by = tables::Schema::parse(&schema)?.map(|s| s.key_columns()).unwrap_or_default();
            *target = Target { replace_schema: true, schema, sorted_by, ..target.clone() };
        }
        if map.as_ref().is_some_and(|map| map.outside) {
            // What is left of a sorted table is in its order, also where no schema says so.
            for (path, target) in paths.iter().zip(&mut outputs) {
                target.sorted_by.clone_from(&self.table(path)?.1.sorted_by);
            }
        }
        let merge_by = match &map {
            Some(map) => self.merged_by(map, &pieces, &mut outputs)?,
            None => Vec::new(),
        };
        let ends = match &map {
            // Where keys lie, and so where another job could begin, is not known before the rows are read.
            Some(_) if !merge_by.is_empty() => {
                weights.iter().map(|w| w.rows).reduce(Add::add).into_iter().collect()
            }
            Some(map) => cut(&weights, &map.cutting),
            None => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for target in &outputs {
            if !seen.insert(target.table) {
                let path = self.tree.path(target.table);
                return Err(Failure::new(format!("Output table {path} is there twice")).with("path", path));
            }
        }
        let attributes = yson::map! {"title" => format!("Output of operation {id}"), "operation_id" => id};
        let options = StartOptions {
            parent,
            timeout: TRANSACTION_TIMEOUT,
            deadline: None,
            prerequisites: Vec::new(),
            attributes,
        };
        let started = self.tree.start(Context { now, user: &user, ids: &mut self.ids }, options)?;
        let transaction = self.absorb(started, out);
        self.tree.lift_lock_limit(transaction);
        let locked = self.inside(transaction, |kernel| {
            for target in &outputs {
                let context = Context { now, user: &user, ids: &mut kernel.ids };
                let options = LockOptions { mode: target.lock_mode(), waitable: false };
                let done = kernel.tree.lock(context, target.table, options)?;
                kernel.absorb(done, out);
            }
            Ok(())
        });
        if let Err(failure) = locked {
            self.end_transaction(transaction, out);
            return Err(failure);
        }
        if let Some(operation) = self.operations.get_mut(&id) {
            let (done, written) = (BTreeMap::new(), vec![0; outputs.len()]);
            let tables = WorkTables {
                transaction,
                pieces,
                payers,
                columns,
                merge_by,
                ends,
                outputs,
                task_outputs,
                done,
                written,
            };
            self.tree.hold(tables.holds());
            operation.set_tables(tables);
        }
        Ok(())
    }

    /// By which columns the rows of all pieces must be merged, if they must; the outputs are told how they are sorted.
    fn merged_by(
        &self,
        map: &MapSpec,
        pieces: &[InputPiece],
        outputs: &mut [Target],
    ) -> Result<Vec<String>, Failure> {
        let Some(asked) = &map.merge_by else { return Ok(Vec::new()) };
        let mut merge_by = Vec::new();
        for target in outputs {
            let keys = self.merge_keys(&map.inputs, asked, &target.schema)?;
            // Else its path or its schema says so.
            if target.sorted_by.is_empty() {
                target.sorted_by = keys.sorted_by;
            }
            merge_by = keys.columns;
        }
        let runs: BTreeSet<(u32, u32)> = pieces.iter().map(|p| (p.table, p.range)).collect();
        match runs.len() {
            // It is in order.
            0 | 1 => Ok(Vec::new()),
            2..=MAX_MERGED => Ok(merge_by),
            more => Err(Failure::new(format!(
                "At most {MAX_MERGED} tables and ranges of tables are merged by their keys at a time, found {more}"
            ))),
        }
    }

    /// Does something with the eyes of a transaction, whoever's were in use before.
    fn inside(
        &mut self,
        transaction: ObjectId,
        work: impl FnOnce(&mut Kernel) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let around = self.tree.entered();
        self.tree.leave();
        let done = self.tree.enter(transaction).and_then(|()| work(self));
        self.tree.leave();
        if let Some(around) = around {
            // It was there a moment ago.
            let _ = self.tree.enter(around);
        }
        done
    }

    fn end_transaction(&mut self, transaction: ObjectId, out: &mut Vec<Effect>) {
        // It may be gone with the one around it.
        if let Ok(done) = self.tree.abort(transaction) {
            self.absorb(done, out);
        }
    }

    /// The rows of the inputs, what they weigh, and the columns that are wanted of each table.
    #[allow(clippy::type_complexity)] // three lists that are made in one go
    fn input_pieces(&self, map: &MapSpec) -> Result<(Vec<InputPiece>, Vec<Piece>, Vec<Columns>), Failure> {
        let (mut pieces, mut weights, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (table, path) in (0..).zip(&map.inputs) {
            let (_, content) = self.table(path)?;
            let selection = Selection::of(path, content.row_count())?;
            let ranges = match map.outside {
                true => selection.outside(content.row_count()),
                false => selection.ranges,
            };
            for (range, wanted) in (0..).zip(&ranges) {
                let mut first = 0;
                for chunk in &content.chunks {
                    let rows =
                        wanted.start.max(first) - first..wanted.end.clamp(first, first + chunk.rows) - first;
                    if rows.start < rows.end {
                        let count = rows.end - rows.start;
                        let weight = u128::from(chunk.weight) * u128::from(count) / u128::from(chunk.rows);
                        weights.push(Piece { rows: count, weight: weight as u64 });
                        let (blob, size) = (chunk.blob, chunk.size);
                        let row_index = first + rows.start;
                        if pieces.len() == MAX_PIECES {
                            return Err(Failure::new(format!(
                                "The input lies in more than {MAX_PIECES} pieces of chunks: merge its tables with \
                                 \"combine_chunks\", or read fewer of them at a time"
                            )));
                        }
                        pieces.push(InputPiece { table, range, row_index, blob, size, rows });
                    }
                    first += chunk.rows;
                }
            }
            columns.push(selection.columns);
        }
        Ok((pieces, weights, columns))
    }

    fn payer_of_table(&self, user: &str, path: &YPath) -> Result<Arc<Payer>, Failure> {
        let (table, _) = self.table(path)?;
        Ok(self.tree.payer(table).unwrap_or_else(|| Arc::new(unknown_payer(user))))
    }

    fn target(&self, user: &str, path: &YPath) -> Result<Target, Failure> {
        let (table, content) = self.table(path)?;
        Selection::refuse_ranges(path)?;
        let append = super::merge::is_append(path)?;
        let given = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity()).cloned();
        let (replace_schema, schema) = match given("schema") {
            Some(schema) => (true, schema),
            None => (false, content.schema.clone()),
        };
        let parsed = tables::Schema::parse(&schema).map_err(|failure| about(path, failure))?;
        let sorted_by = match (&parsed, given("sorted_by")) {
            (Some(schema), _) => schema.key_columns(),
            (None, Some(asked)) => {
                let names =
                    asked.as_list().and_then(|l| l.iter().map(|n| n.as_str().map(str::to_owned)).collect());
                names.ok_or_else(|| {
                    let found = asked.type_name();
                    let text = format!("Attribute \"sorted_by\" must be a list of strings, found {found}");
                    about(path, Failure::new(text))
                })?
            }
            (None, None) => Vec::new(),
        };
        let schema = if parsed.is_some() { schema } else { Value::Entity };
        let row_count_limit = super::merge::row_count_limit(path)?;
        let payer = self.payer_of_table(user, path)?;
        Ok(Target { table, payer, append, replace_schema, schema, sorted_by, row_count_limit })
    }

    /// The end of an operation that completes: what its jobs have written becomes rows of its outputs.
    pub(super) fn publish_tables(
        &mut self,
        now: Time,
        id: OperationId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let Some(operation) = self.operations.get(&id) else { return Ok(()) };
        let Some(tables) = operation.tables.clone() else { return Ok(()) };
        let user = operation.user.clone();
        // From here on the tables are charged for them.
        self.tree.release_charges(tables.transaction);
        let mut written: BTreeMap<u32, Vec<Chunk>> = BTreeMap::new();
        for ((_, table), chunk) in &tables.done {
            written.entry(*table).or_default().push(chunk.clone());
        }
        self.inside(tables.transaction, |kernel| {
            for (number, target) in (0..).zip(&tables.outputs) {
                let mut chunks = written.remove(&number).unwrap_or_default();
                if !target.sorted_by.is_empty() {
                    // Each is sorted; the order of the units says nothing about the order of what they wrote.
                    chunks.sort_by(|a, b| match (&a.bounds, &b.bounds) {
                        (Some((a, _)), Some((b, _))) => tables::compare_keys(a, b),
                        _ => std::cmp::Ordering::Equal,
                    });
                }
                let rows = TableRows {
                    chunks,
                    append: target.append,
                    sorted_by: target.sorted_by.clone(),
                    schema: target.schema.clone(),
                    replace_schema: target.replace_schema,
                };
                let path =
                    YPath { root: yson::ypath::Root::Object(target.table.to_string()), ..YPath::default() };
                kernel.table_written(now, &user, &path, rows, out)?;
            }
            Ok(())
        })?;
        self.commit_transaction(now, &user, tables.transaction, out)
    }

    /// The end of an operation that does not complete.
    pub(super) fn drop_tables(&mut self, id: OperationId, out: &mut Vec<Effect>) {
        let transaction = self.operations.get(&id).and_then(|o| o.tables.as_ref()).map(|t| t.transaction);
        if let Some(transaction) = transaction {
            self.end_transaction(transaction, out);
        }
    }

    /// Locks of operations do not expire.
    pub(crate) fn keep_output_transactions(&mut self, now: Time) {
        let kept: Vec<ObjectId> =
            self.operations.values().filter_map(|o| o.tables.as_ref()).map(|t| t.transaction).collect();
        for transaction in kept {
            // One that is gone ends its operation elsewhere.
            let _ = self.tree.ping(now, transaction, false);
        }
    }

    /// What a completed job says that it has written must be there: it is not if the server was another one
    /// when it came.
    pub(crate) fn has_all_output(&self, job_id: JobId, finished: &wire::FinishedJob) -> bool {
        let written = finished.statistics.tables.iter().flat_map(|t| &t.outputs);
        let there = self.jobs.output(job_id);
        (0u32..).zip(written).filter(|(_, flow)| flow.row_count > 0).all(|(table, flow)| {
            there.get(&table).is_some_and(|of| of.chunk.rows == flow.row_count.unsigned_abs())
        })
    }

    /// 902 if what a job has written is more than the accounts of its tables have room for: the job fails then, and the
    /// operation with it.
    pub(crate) fn refuse_output(
        &self,
        id: OperationId,
        task: &str,
        chunks: &BTreeMap<u32, Chunk>,
    ) -> Result<(), Failure> {
        for (number, chunk) in chunks {
            let Some(table) = self.output_table(id, task, *number) else { continue };
            let refused = match self.tree.check_chunk(table, chunk) {
                Ok(()) if chunk.blob == NOT_KEPT => Failure::coded(
                    code::ACCOUNT_LIMIT,
                    "The account of an output table had no room for the rows of the job when they came",
                ),
                Ok(()) => continue,
                Err(failure) => failure,
            };
            let path = self.tree.trunk().path(table);
            return Err(refused.with("path", path).with("fatal", true));
        }
        Ok(())
    }

    /// An output table of a task, by its number among those of the task.
    fn output_table(&self, id: OperationId, task: &str, number: u32) -> Option<ObjectId> {
        let operation = self.operations.get(&id)?;
        let task = operation.spec.spec.tasks.iter().position(|t| t.name == task)?;
        let tables = operation.tables.as_ref()?;
        let place = tables.task_outputs.get(task)?.get(number as usize)?;
        Some(tables.outputs.get(*place as usize)?.table)
    }

    /// Bytes that a running job may still write to one of its output tables, by limit; `None` if it has no such table.
    pub(crate) fn room_of_output(&self, job_id: JobId, number: u32) -> Option<Map> {
        self.output_of_job(job_id, number).map(|(_, table)| self.disk_room(table))
    }

    /// The transaction of a running job's operation, and one of the job's output tables.
    fn output_of_job(&self, job_id: JobId, number: u32) -> Option<(ObjectId, ObjectId)> {
        let job = self.jobs.get(job_id)?;
        let operation = self.operations.get(&job.operation)?;
        let task = &operation.controller.job(job_id)?.identity().task;
        let transaction = operation.tables.as_ref()?.transaction;
        Some((transaction, self.output_table(job.operation, task, number)?))
    }

    /// Rows of a running job have come. They count at once, and not only from the end of the job.
    pub(crate) fn rows_uploaded(&mut self, job_id: JobId, number: u32, chunk: Chunk, out: &mut Vec<Effect>) {
        let is_kept = chunk.blob != NOT_KEPT;
        let place = self.output_of_job(job_id, number).filter(|_| is_kept);
        if let Some((transaction, table)) = place {
            self.tree.reserve_chunk(transaction, table, &chunk);
        }
        if let Some(lost) = self.jobs.keep_output(job_id, number, Uploaded { chunk, place }) {
            self.release_uploaded(&lost);
            self.delete_blob(lost.chunk.blob, out);
        }
    }

    /// The rows of a job are dropped, or noted as output of its operation, which counts them again.
    pub(crate) fn release_uploaded(&mut self, uploaded: &Uploaded) {
        if let Some((transaction, table)) = uploaded.place {
            self.tree.release_chunk(transaction, table, &uploaded.chunk);
        }
    }

    /// What the jobs of an operation have written before a restart counts again.
    pub(crate) fn charge_outputs(&mut self, id: OperationId) {
        let Some(tables) = self.operations.get(&id).and_then(|operation| operation.tables.as_ref()) else {
            return;
        };
        self.tree.lift_lock_limit(tables.transaction);
        for ((_, table), chunk) in &tables.done {
            if let Some(target) = tables.outputs.get(*table as usize) {
                self.tree.reserve_chunk(tables.transaction, target.table, chunk);
            }
        }
    }

    /// The rows of a unit that is done, by the number of the table among those of its task.
    pub(crate) fn note_output(
        &mut self,
        id: OperationId,
        task: &str,
        place: u64,
        chunks: BTreeMap<u32, Chunk>,
    ) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let task = operation.spec.spec.tasks.iter().position(|t| t.name == task);
        let (Some(task), Some(tables)) = (task, operation.tables.as_mut()) else { return };
        for (number, chunk) in chunks {
            let Some(table) = tables.task_outputs.get(task).and_then(|own| own.get(number as usize)).copied()
            else {
                continue;
            };
            let key = [place.to_be_bytes().as_slice(), &table.to_be_bytes()].concat();
            self.open.batch.put(
                Table::Operations,
                operation_key(id, OUTPUT, &key),
                yson::to_binary(&chunk.to_value()),
            );
            let target = tables.outputs.get(table as usize);
            if let Some(target) = target {
                self.tree.reserve_chunk(tables.transaction, target.table, &chunk);
                self.tree.hold([target.hold(&chunk)]);
            }
            let rows = chunk.rows;
            let replaced = tables.done.insert((place, table), chunk);
            if let (Some(target), Some(replaced)) = (target, &replaced) {
                self.tree.release_chunk(tables.transaction, target.table, replaced);
                self.tree.let_go([target.hold(replaced)]);
            }
            let before = replaced.map_or(0, |chunk| chunk.rows);
            if let Some(written) = tables.written.get_mut(table as usize) {
                *written = *written + rows - before;
            }
        }
    }

    /// An operation of which an output has as many rows as its path asks for is complete (http-api.md 5.4,
    /// `row_count_limit`).
    pub(crate) fn complete_with_enough_rows(&mut self, now: Time, id: OperationId, out: &mut Vec<Effect>) {
        let has_enough = self.operations.get(&id).is_some_and(|operation| {
            operation.state == OperationState::Running
                && operation.tables.as_ref().is_some_and(WorkTables::has_enough)
        });
        if has_enough {
            self.finish_operation(now, id, OperationState::Completed, None, out);
        }
    }

    /// What a job is to read, see [`Operation::input_of`]. Nodes ask this.
    pub(crate) fn locate_job_input(&self, job_id: JobId) -> Result<Value, Failure> {
        let none = || Failure::resolve(format!("No running job {job_id} that reads tables"));
        let job = self.jobs.get(job_id).ok_or_else(none)?;
        let operation = self.operations.get(&job.operation).ok_or_else(none)?;
        let rows = operation.controller.rows_of_job(job_id).ok_or_else(none)?;
        operation.input_of(rows).ok_or_else(none)
    }
}

impl Operation {
    /// Tables that were found: the controller gets its units.
    pub(crate) fn set_tables(&mut self, tables: WorkTables) {
        for (number, (task, own)) in (0..).zip(self.spec.spec.tasks.iter().zip(&tables.task_outputs)) {
            let script = &task.script;
            let own = own.iter().filter_map(|table| tables.outputs.get(*table as usize));
            let io = TableIo {
                input_rows: None,
                input_format: script.input_format.clone(),
                output_format: script.output_format.clone(),
                outputs: own
                    .map(|t| OutputTable { schema: t.schema.clone(), sorted_by: t.sorted_by.clone() })
                    .collect(),
                first_output: if script.redirect_stdout_to_stderr { 4 } else { 1 },
                check_input_fully_consumed: script.check_input_fully_consumed,
            };
            if self.spec.spec.map.is_some() {
                self.controller.set_tables(number, io, &tables.ends);
            } else if !io.outputs.is_empty() {
                self.controller.set_outputs(number, io);
            }
        }
        self.tables = Some(tables);
    }

    /// Rows of the input, counted through all of it: `{pieces=[[table; range; row_index; blob; size; from;
    /// to]...]; columns; control; paths; format}`, with `merge_by` if they are read in the order of their keys.
    pub(crate) fn input_of(&self, rows: Range<u64>) -> Option<Value> {
        let (tables, map) = (self.tables.as_ref()?, self.spec.spec.map.as_ref()?);
        let task = self.spec.spec.tasks.first()?;
        let input = yson::map! {
            "pieces" => pieces_of(&tables.pieces, &rows),
            "columns" => tables.columns.iter().map(Columns::to_value).collect::<Vec<_>>(),
            "control" => map.control_attributes.clone(),
            "paths" => map.inputs.iter().map(YPath::to_value).collect::<Vec<_>>(),
            "format" => task.script.input_format.clone(),
        };
        let merge_by = Some(&tables.merge_by).filter(|columns| !columns.is_empty()).cloned();
        Some(input.with_some("merge_by", merge_by).into())
    }
}

/// The output tables of all tasks, each once, and which of them each task has.
fn outputs_of(tasks: &[TaskSpec]) -> (Vec<YPath>, Vec<Vec<u32>>) {
    let mut paths: Vec<YPath> = Vec::new();
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    let mut number = |path: &YPath| {
        *known.entry(path.text()).or_insert_with(|| {
            paths.push(path.clone());
            (paths.len() - 1) as u32
        })
    };
    let numbers = tasks.iter().map(|task| task.outputs.iter().map(&mut number).collect()).collect();
    (paths, numbers)
}

fn numbers(numbers: &[u32]) -> Value {
    Value::List(numbers.iter().map(|number| Value::from(u64::from(*number))).collect())
}

fn numbers_from(value: &Value) -> Option<Vec<u32>> {
    value.as_list()?.iter().map(|number| number.as_u64()?.try_into().ok()).collect()
}

impl InputPiece {
    pub(crate) fn to_value(&self) -> Value {
        let numbers = [
            self.table.into(),
            self.range.into(),
            self.row_index,
            self.blob,
            self.size,
            self.rows.start,
            self.rows.end,
        ];
        Value::List(numbers.into_iter().map(Value::from).collect())
    }

    pub(crate) fn from_value(value: &Value) -> Option<InputPiece> {
        let numbers: Vec<u64> = value.as_list()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        let [table, range, row_index, blob, size, from, to] = numbers.try_into().ok()?;
        let (table, range) = (table.try_into().ok()?, range.try_into().ok()?);
        Some(InputPiece { table, range, row_index, blob, size, rows: from..to })
    }
}

impl WorkTables {
    /// Is there an output with as many rows as anybody wants?
    pub fn has_enough(&self) -> bool {
        let mut outputs = self.outputs.iter().zip(&self.written);
        outputs.any(|(target, written)| target.row_count_limit.is_some_and(|limit| *written >= limit))
    }

    /// Contents that must stay.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        let of_piece = |piece: &InputPiece| {
            let payer = Arc::clone(self.payers.get(piece.table as usize)?);
            Some(Hold { blob: piece.blob, size: piece.size, payer })
        };
        let of_output =
            |((_, table), chunk): (&(u64, u32), &Chunk)| Some(self.outputs.get(*table as usize)?.hold(chunk));
        self.pieces.iter().filter_map(of_piece).chain(self.done.iter().filter_map(of_output))
    }

    /// The part that never changes.
    pub fn to_value(&self) -> Value {
        let target = |t: &Target| -> Map {
            yson::map! {
                "table" => t.table,
                "payer" => payer_value(&t.payer),
                "append" => t.append,
                "replace_schema" => t.replace_schema,
                "schema" => t.schema.clone(),
                "sorted_by" => t.sorted_by.clone(),
            }
            .with_some("row_count_limit", t.row_count_limit)
        };
        yson::map! {
            "transaction_id" => self.transaction,
            "pieces" => self.pieces.iter().map(InputPiece::to_value).collect::<Vec<_>>(),
            "payers" => self.payers.iter().map(|payer| payer_value(payer)).collect::<Vec<_>>(),
            "columns" => self.columns.iter().map(Columns::to_value).collect::<Vec<_>>(),
            "merge_by" => self.merge_by.clone(),
            "ends" => self.ends.iter().map(|end| Value::from(*end)).collect::<Vec<_>>(),
            "outputs" => self.outputs.iter().map(target).collect::<Vec<_>>(),
            "task_outputs" => self.task_outputs.iter().map(|own| numbers(own)).collect::<Vec<_>>(),
        }
        .into()
    }

    /// The inverse, with what is done so far. `user` is that of the operation.
    pub fn from_value(value: &Value, user: &str, done: BTreeMap<(u64, u32), Chunk>) -> Option<WorkTables> {
        let list = |key: &str| value.get(key).and_then(Value::as_list);
        let names = |value: &Value| -> Option<Vec<String>> {
            value.as_list()?.iter().map(|n| n.as_str().map(str::to_owned)).collect()
        };
        let target = |v: &Value| {
            Some(Target {
                table: v.get("table")?.as_str()?.parse().ok()?,
                payer: Arc::new(payer_from_value(v.get("payer"), user)?),
                append: v.get("append")?.as_bool()?,
                replace_schema: v.get("replace_schema")?.as_bool()?,
                schema: v.get("schema")?.clone(),
                sorted_by: names(v.get("sorted_by")?)?,
                row_count_limit: v.get("row_count_limit").and_then(Value::as_u64),
            })
        };
        let outputs: Vec<Target> = list("outputs")?.iter().map(target).collect::<Option<_>>()?;
        let task_outputs = match list("task_outputs") {
            Some(tasks) => tasks.iter().map(numbers_from).collect::<Option<_>>()?,
            // Written by a version in which only maps had tables.
            None => vec![(0..outputs.len() as u32).collect()],
        };
        let mut written = vec![0; outputs.len()];
        for ((_, table), chunk) in &done {
            *written.get_mut(*table as usize)? += chunk.rows;
        }
        let columns: Vec<Columns> =
            list("columns")?.iter().map(Columns::from_value).collect::<Option<_>>()?;
        let payers: Vec<Arc<Payer>> = match list("payers") {
            Some(payers) => {
                let payer = |value| payer_from_value(Some(value), user).map(Arc::new);
                payers.iter().map(payer).collect::<Option<_>>()?
            }
            // Not in records of a version that charged nobody.
            None => {
                let payer = Arc::new(unknown_payer(user));
                columns.iter().map(|_| Arc::clone(&payer)).collect()
            }
        };
        if payers.len() != columns.len() {
            return None;
        }
        Some(WorkTables {
            transaction: value.get("transaction_id")?.as_str()?.parse().ok()?,
            pieces: list("pieces")?.iter().map(InputPiece::from_value).collect::<Option<_>>()?,
            payers,
            columns,
            // Not in records of a version without it.
            merge_by: value.get("merge_by").map_or(Some(Vec::new()), names)?,
            ends: list("ends")?.iter().map(Value::as_u64).collect::<Option<_>>()?,
            outputs,
            task_outputs,
            done,
            written,
        })
    }
}

/// A record of what is done: key behind the operation and its part, and the chunk.
pub(crate) fn parse_output(rest: &[u8], value: &[u8]) -> Option<((u64, u32), Chunk)> {
    let (row, table) = rest.split_first_chunk::<8>()?;
    let table = u32::from_be_bytes(table.try_into().ok()?);
    let chunk = Chunk::from_value(&yson::parse_record(value).ok()?)?;
    Some(((u64::from_be_bytes(*row), table), chunk))
}
