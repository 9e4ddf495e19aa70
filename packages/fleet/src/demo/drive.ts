import { bounded } from "../bounded.js";
import type { Contract } from "../contracts.js";
import { repeatAsRevisions } from "../contracts.js";
import type { Producer } from "../producer.js";
import type { Deal } from "./deal.js";
import type { OperationGlance } from "./operations.js";
import type { Watch } from "./watch.js";

/** A tenant with its way to plan. */
export interface DemoTenant {
  readonly tenantId: string;
  readonly producer: Producer;
}

export interface DriveOptions {
  readonly tenants: readonly DemoTenant[];
  readonly contracts: readonly Contract[];
  readonly deal: Deal;
  readonly watch: Watch;
  readonly signal: AbortSignal;
  /** Called once everything that is to be amended or voided is. */
  changesPlanned(): Promise<void>;
}

interface Planned {
  readonly tenant: DemoTenant;
  readonly contract: Contract;
  readonly operationId: string;
}

const plansAtOnce = 8;
/** Its first call has been made: what is done to it from now on cannot simply retire it. */
const attempted = ({ state, attemptNo }: OperationGlance): boolean => attemptNo > 0 && state !== "PLANNED";

const inFlight = ({ state }: OperationGlance): boolean =>
  state === "IN_FLIGHT" || state === "UNKNOWN" || state === "RECONCILING";

/**
 * What several services would ask for over a day, in seconds: contracts of all tenants, about a tenth of them amended
 * while in flight or voided later. Resolves when everything is planned.
 */
export async function drive(options: DriveOptions): Promise<void> {
  const { tenants, deal, signal } = options;
  const uploaded = await uploadDocuments(options);
  const contracts = repeatAsRevisions(uploaded, deal.contracts);
  const changes = new Changes(options);
  const atOnce = new Set(spread(contracts.length, deal.voidsAtOnce));
  const changing = changes.run().then(() => options.changesPlanned());
  // A failure there is thrown below; it must not count as unhandled while this still plans.
  changing.catch(() => undefined);
  await bounded(contracts, plansAtOnce, async (contract, index) => {
    signal.throwIfAborted();
    const tenant = tenants[index % tenants.length];
    if (tenant === undefined) return;
    const operationId = await tenant.producer.send({ intent: contract.intent, payload: contract.payload });
    if (atOnce.has(index)) await tenant.producer.void(`${contract.intent}-withdrawn`, operationId);
    else changes.offer({ tenant, contract, operationId });
  });
  changes.allPlanned();
  await changing;
}

/** Every tenant stores each document once. */
async function uploadDocuments({ tenants, contracts }: DriveOptions): Promise<readonly Contract[]> {
  const documents = new Map(contracts.map(({ payload, document }) => [payload.documents[0]?.sha256, document]));
  for (const { producer } of tenants) {
    await bounded([...documents.values()], plansAtOnce, async (bytes) => {
      await producer.uploadDocument(bytes);
    });
  }
  return contracts;
}

/** `count` numbers below `total`, evenly apart. */
export function spread(total: number, count: number): number[] {
  return Array.from({ length: Math.min(count, total) }, (_, turn) => Math.floor(((turn + 0.5) * total) / count));
}

/** Chooses what is amended and voided, and plans that. */
class Changes {
  readonly #options: DriveOptions;
  readonly #open = new Map<string, Planned>();
  #complete = false;
  #amended = 0;
  #voided = 0;

  constructor(options: DriveOptions) {
    this.#options = options;
  }

  offer(planned: Planned): void {
    this.#open.set(planned.operationId, planned);
  }

  allPlanned(): void {
    this.#complete = true;
  }

  async run(): Promise<void> {
    const { deal, watch, signal } = this.#options;
    while (this.#amended < deal.amendments || this.#voided < deal.voids) {
      const rows = await watch.next();
      signal.throwIfAborted();
      if (this.#complete && this.#open.size === 0) return;
      const ready = rows.filter((row) => this.#open.has(row.operationId) && attempted(row));
      await this.#amend(ready);
      await this.#void(ready);
    }
  }

  /** Those whose outcome is open at this moment first; once all is planned, any. Two at a time, to meet several. */
  async #amend(ready: readonly OperationGlance[]): Promise<void> {
    const wanted = Math.min(2, this.#options.deal.amendments - this.#amended);
    const open = ready.filter(inFlight);
    const settled = this.#complete ? ready.filter((row) => !inFlight(row)) : [];
    for (const row of [...open, ...settled].slice(0, wanted)) {
      const planned = this.#take(row);
      if (planned === undefined) continue;
      const { tenant, contract, operationId } = planned;
      const mode = this.#amended % 2 === 0 ? "void-first" : "send-first";
      this.#amended += 1;
      const expiresInDays = (contract.payload.expiresInDays ?? 30) === 30 ? 45 : 30;
      await tenant.producer.send({
        intent: `${contract.intent}-amended`,
        payload: { ...contract.payload, expiresInDays },
        supersedes: { operationId, mode },
      });
    }
  }

  async #void(ready: readonly OperationGlance[]): Promise<void> {
    if (this.#voided >= this.#options.deal.voids) return;
    const [row] = ready.filter(({ state, operationId }) => state === "CONFIRMED" && this.#open.has(operationId));
    const planned = row === undefined ? undefined : this.#take(row);
    if (planned === undefined) return;
    this.#voided += 1;
    await planned.tenant.producer.void(`${planned.contract.intent}-withdrawn`, planned.operationId);
  }

  #take({ operationId }: OperationGlance): Planned | undefined {
    const planned = this.#open.get(operationId);
    this.#open.delete(operationId);
    return planned;
  }
}
