export {
  type Action,
  actions,
  type NeutralPayload,
  type NeutralPayloadInput,
  neutralPayload,
  sha256Hex,
  type TargetPayload,
  targetPayload,
} from "./neutral-payload.js";
