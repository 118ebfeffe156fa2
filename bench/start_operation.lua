-- For wrk: submits operations of one job that never starts. The pool is made by bench/run.py.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [[{"operation_type":"vanilla","spec":{"pool":"bench","tasks":{"t":{"command":"true","job_count":1,"cpu_limit":1.0,"memory_limit":33554432}}}}]]

local failed = 0
function response(status, headers, body)
    if status ~= 200 then
        failed = failed + 1
        if failed == 1 then io.stderr:write(body, "\n") end
    end
end
