/// @file
/// In the place of CUDA's header of this name, which declares threadIdx and its like as variables: here they are macros, which are
/// always there.
