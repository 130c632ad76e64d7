package thrift

import "context"

// Calls of clients that only tests make.

// RegisterRead returns a cell. Values from 2^63 on saturate at 2^63-1.
func (c *Client) RegisterRead(ctx context.Context, name string, index int) (uint64, error) {
	x, err := ask[int64](ctx, c, "standard", "bm_register_read", named(name, field{3, int32(index)}))
	return uint64(x), err
}

// RegisterWrite sets a cell.
func (c *Client) RegisterWrite(ctx context.Context, name string, index int, value uint64) error {
	return c.do(ctx, "standard", "bm_register_write", named(name, field{3, int32(index)}, field{4, int64(value)}))
}

// RegisterReset sets all cells to zero. On BMv2 it can miss cells that packets
// write at the same time; RegisterWriteRange cannot.
func (c *Client) RegisterReset(ctx context.Context, name string) error {
	return c.do(ctx, "standard", "bm_register_reset", named(name))
}

// CounterRead returns a cell of a counter.
func (c *Client) CounterRead(ctx context.Context, name string, index int) (packets, bytes uint64, err error) {
	r, err := ask[record](ctx, c, "standard", "bm_counter_read", named(name, field{3, int32(index)}))
	return uint64(r.int64At(2)), uint64(r.int64At(1)), err
}

// CounterReset sets all cells of a counter to zero.
func (c *Client) CounterReset(ctx context.Context, name string) error {
	return c.do(ctx, "standard", "bm_counter_reset_all", named(name))
}

// ConfigMD5 returns the MD5 sum of the running program.
func (c *Client) ConfigMD5(ctx context.Context) ([]byte, error) {
	return ask[[]byte](ctx, c, "standard", "bm_get_config_md5", nil)
}
