// Program that uses the generated types: it lists and creates pipes, runs a draft and reads a problem. Prints JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type PipeSpec = components["schemas"]["PipeSpec"];

const [baseUrl, user, password] = process.argv.slice(2);
const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
const client = createClient<paths>({ baseUrl: baseUrl!, headers: { authorization } });

const spec: PipeSpec = {
  sources: { shop: { type: "http" } },
  normalize: [{ op: "filter", when: "body.total > 0" }],
  destinations: { crm: { type: "http", url: "https://crm.example.com/in" }, archive: { type: "topic" } },
};

async function create(name: string, key: string) {
  return client.POST("/api/v1/pipes/", {
    params: { header: { "Idempotency-Key": key } },
    body: { name, spec },
  });
}

const first = await create("orders", "key-1");
const second = await create("orders", "key-1");
const clash = await create("orders", "key-2");
const listed = await client.GET("/api/v1/pipes/", { params: { query: { limit: 10 } } });
const run = await client.POST("/api/v1/pipes/dry-run/", { body: { spec, event: { total: 12 } } });
const missing = await client.GET("/api/v1/pipes/{pipe}/", {
  params: { path: { pipe: "pipe_00000000000000000000" } },
});

// Each of these lines compiles only if the document types the response.
const created: string | undefined = first.data?.id;
const names: string[] = listed.data?.results.map((pipe) => pipe.name) ?? [];
const next: string | null | undefined = listed.data?.next;
const destinations: string[] = run.data?.requests.map((request) => request.destination) ?? [];
const problem: string | undefined = missing.error?.code;
const taken: string | undefined = clash.error?.code;

console.log(
  JSON.stringify({
    created,
    repeated: second.data?.id,
    replayed: second.response.headers.get("Idempotent-Replayed"),
    names,
    next,
    destinations,
    problem,
    taken,
  }),
);
