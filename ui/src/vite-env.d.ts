// Types of what the build tool adds to imports.
/// <reference types="vite/client" />
