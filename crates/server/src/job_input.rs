//! What a job was given to read, for people: `get_job_input` and `get_job_input_paths` (http-api.md 8.6).

use crate::backend::{ServerBackend, wait};
use crate::job_rows::JobInput;
use crate::streams::blocking;
use api::{ByteStream, JobData, JobDataRequest};
use kernel::command::OperationRef;
use kernel::{Body, Command};
use vocab::{Failure, JobId, OperationId, code};
use yson::ypath::YPath;
use yson::{Format, Value};

impl ServerBackend {
    /// Asks the kernel about a job. One that is over is found without its operation, too.
    pub(crate) async fn ask_about_job(
        &self,
        user: String,
        (operation, job_id): (Option<OperationRef>, JobId),
        command: impl Fn(Option<OperationRef>, JobId) -> Command,
    ) -> Result<Body, Failure> {
        let is_named = operation.is_some();
        match wait(self.ask(user.clone(), None, command(operation, job_id))?).await {
            Err(failure) if !is_named && failure.code == code::NO_SUCH_JOB => {
                let archive = self.archive.clone();
                match blocking(move || archive.operation_of(job_id)).await? {
                    Some(id) => {
                        wait(self.ask(user, None, command(Some(OperationRef::Id(id)), job_id))?).await
                    }
                    None => Err(failure),
                }
            }
            other => other,
        }
    }

    /// Where the rows are, or were: `{pieces; columns; control; paths; format}`.
    async fn input_of_job(
        &self,
        user: String,
        request: JobDataRequest,
    ) -> Result<(OperationId, Value), Failure> {
        let JobDataRequest { operation, job_id, .. } = request;
        let command = |operation, job_id| Command::GetJobInput { operation, job_id };
        let Body::JobInput { operation_id, job_id, input } =
            self.ask_about_job(user, (operation, job_id), command).await?
        else {
            return Err(Failure::new("The kernel has told something else than the input of a job"));
        };
        if let Some(input) = input {
            return Ok((operation_id, input));
        }
        let archive = self.archive.clone();
        let rows = blocking(move || archive.rows_of_job(operation_id, job_id)).await?;
        let command = Command::LocateInput { operation_id, rows: rows.clone() };
        let input = match self.value("root".to_owned(), command).await? {
            Value::Entity => {
                let archive = self.archive.clone();
                blocking(move || archive.input(operation_id, &rows)).await?
            }
            input => input,
        };
        Ok((operation_id, input))
    }

    /// Whoever reads what a job has read reads tables: what he may not read there, he may not read here. Of a table
    /// that is not there any more, or of which nothing is known, it is left to those who manage the operation.
    async fn demand_tables(
        &self,
        user: &str,
        operation: OperationId,
        located: &Value,
    ) -> Result<(), Failure> {
        let Some(Value::List(paths)) = paths(located) else {
            return self.demand_management(user, operation).await;
        };
        for path in paths {
            let path = YPath::from_value(&path).map_err(|e| Failure::new(e.to_string()))?;
            let there = self.value("root".to_owned(), Command::Exists { path: path.clone() }).await?;
            if there.as_bool() != Some(true) {
                self.demand_management(user, operation).await?;
                continue;
            }
            let reading = Command::GetTableColumnarStatistics { paths: vec![path] };
            self.value(user.to_owned(), Command::Authorize(Box::new(reading))).await?;
        }
        Ok(())
    }

    async fn demand_management(&self, user: &str, operation: OperationId) -> Result<(), Failure> {
        let managing = Command::ResumeOperation { operation: OperationRef::Id(operation) };
        self.value(user.to_owned(), Command::Authorize(Box::new(managing))).await.map(drop)
    }

    /// The same for whoever reads the last rows that a job has read before it failed.
    pub(crate) async fn demand_input(
        &self,
        user: String,
        operation: OperationId,
        job_id: JobId,
    ) -> Result<(), Failure> {
        let request =
            JobDataRequest { operation: Some(OperationRef::Id(operation)), job_id, data: JobData::Input };
        match self.input_of_job(user.clone(), request).await {
            Ok((_, located)) => self.demand_tables(&user, operation, &located).await,
            Err(_) => self.demand_management(&user, operation).await,
        }
    }

    /// The rows as the job was given them.
    pub(crate) async fn job_input(
        &self,
        user: String,
        request: JobDataRequest,
    ) -> Result<ByteStream, Failure> {
        let job_id = request.job_id;
        // The operation may end, and its tables may be written anew, at any time.
        let reading = self.readers.begin();
        let (operation, located) = self.input_of_job(user.clone(), request).await?;
        self.demand_tables(&user, operation, &located).await?;
        let malformed = || Failure::new(format!("The description of the input of job {job_id} is malformed"));
        let input = JobInput::from_value(&located).ok_or_else(malformed)?;
        let format = located.get("format").ok_or_else(malformed)?;
        let format = Format::from_value(format)
            .map_err(|e| Failure::new(format!("Bad input format of job {job_id}: {e}")))?;
        let reading = reading.of(input.blobs());
        let store = self.tables.store();
        blocking(move || match input.lost_table(&*store) {
            None => input.stream(store, format).map(|rows| reading.guard(rows)),
            Some(table) => {
                let path = located.get("paths").and_then(Value::as_list).and_then(|paths| paths.get(table));
                let path = path.and_then(Value::as_str).unwrap_or("a table").to_owned();
                let text = format!("Rows of {path} that job {job_id} has read are not there any more");
                Err(Failure::new(text).with("job_id", job_id).with("path", path))
            }
        })
        .await
    }

    /// The tables, with the rows of each.
    pub(crate) async fn job_input_paths(
        self,
        user: String,
        request: JobDataRequest,
    ) -> Result<Value, Failure> {
        let (_, located) = self.input_of_job(user, request).await?;
        paths(&located).ok_or_else(|| Failure::new("The description of the input of a job is malformed"))
    }
}

/// A path for each table that rows come from, its `ranges` being these rows.
fn paths(located: &Value) -> Option<Value> {
    let paths = located.get("paths")?.as_list()?;
    let mut ranges: Vec<Vec<Rows>> = vec![Vec::new(); paths.len()];
    for piece in located.get("pieces")?.as_list()? {
        let numbers: Vec<u64> = piece.as_list()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        let [table, range, first, _, _, from, to] = numbers.try_into().ok()?;
        let end = first + (to - from);
        let of_table = ranges.get_mut(usize::try_from(table).ok()?)?;
        match of_table.last_mut() {
            Some(last) if last.range == range && last.end == first => last.end = end,
            _ => of_table.push(Rows { range, first, end }),
        }
    }
    let with_rows = paths.iter().zip(ranges).filter(|(_, rows)| !rows.is_empty());
    let told = with_rows.map(|(path, rows)| {
        let mut path = YPath::from_value(path).ok()?;
        for selects_rows in ["ranges", "lower_limit", "upper_limit", "exact"] {
            path.attributes.remove(selects_rows);
        }
        path.attributes.insert("ranges", rows.iter().map(Rows::to_value).collect::<Vec<_>>());
        Some(path.to_value())
    });
    told.collect::<Option<Vec<_>>>().map(Value::from)
}

#[derive(Clone)]
struct Rows {
    range: u64,
    first: u64,
    end: u64,
}

impl Rows {
    fn to_value(&self) -> Value {
        let limit = |row: u64| yson::map! {"row_index" => row as i64};
        yson::map! {"lower_limit" => limit(self.first), "upper_limit" => limit(self.end)}.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_go_on_are_one_range() {
        let located = yson::parse(
            b"{paths=[<columns=[a];lower_limit={row_index=3}>\"//t\"; \"//none\"; \"//u\"];
               pieces=[[0;0;3;9;9;3;5]; [0;0;5;8;9;0;2]; [0;1;7;8;9;0;1]; [2;0;0;7;9;0;4]]}",
        );
        let told = paths(&located.expect("a value")).expect("told");
        let expected = yson::parse(
            b"[<columns=[a];ranges=[{lower_limit={row_index=3};upper_limit={row_index=7}};
                                    {lower_limit={row_index=7};upper_limit={row_index=8}}]>\"//t\";
               <ranges=[{lower_limit={row_index=0};upper_limit={row_index=4}}]>\"//u\"]",
        );
        assert_eq!(told, expected.expect("a value"));
    }
}
