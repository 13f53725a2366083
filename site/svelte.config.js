export default {
  compilerOptions: {
    // The default name contains the path of the file, which differs between machines.
    cssHash: ({ hash, css }) => `s-${hash(css)}`,
  },
};
