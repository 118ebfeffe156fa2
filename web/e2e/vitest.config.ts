import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['e2e/**/*.e2e.ts'],
    // One cluster and one browser: tests would disturb each other.
    fileParallelism: false,
    // Each step has a limit of two minutes; a busy machine is late in many of them.
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
