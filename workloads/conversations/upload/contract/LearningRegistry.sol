// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Records the content id of a learning once. Anyone may record; nobody can change or repeat a record.
contract LearningRegistry {
    struct Entry {
        address by;
        // The block of the record, so that its event can be found without searching the chain.
        uint64 blockNumber;
        string cid;
    }

    mapping(bytes32 id => Entry entry) private entries;

    event Recorded(bytes32 indexed id, address indexed by, string cid);

    error AlreadyRecorded(bytes32 id);

    function record(bytes32 id, string calldata cid) external {
        if (entries[id].by != address(0)) revert AlreadyRecorded(id);
        entries[id] = Entry(msg.sender, uint64(block.number), cid);
        emit Recorded(id, msg.sender, cid);
    }

    /// The zero address and an empty cid where nothing is recorded.
    function recordOf(bytes32 id) external view returns (address by, uint64 blockNumber, string memory cid) {
        Entry storage entry = entries[id];
        return (entry.by, entry.blockNumber, entry.cid);
    }
}
